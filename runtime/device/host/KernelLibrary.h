// SPDX-License-Identifier: Apache-2.0
// Where the executor finds the functions that its tasks call. An interface, so that tests can bring C++ functions.
#pragma once

#include "runtime/abi/KernelAbi.h"

#include <optional>
#include <string>

namespace dg {

class KernelLibrary {
public:
  virtual ~KernelLibrary() = default;
  /// The kernel of that name, or null. The library outlives whoever keeps the pointer. Set-up only.
  virtual dg_kernel find(const std::string &symbol) const = 0;
  /// Tiles of that kernel, which depend on the processor it was made for; nothing if it has none.
  virtual std::optional<uint32_t> tilesOf(const std::string &symbol) const = 0;
};

} // namespace dg
