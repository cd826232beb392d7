// SPDX-License-Identifier: Apache-2.0
// The one block of memory of a rank on the host: every value of its stage has its place in it, decided by dgc.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>

namespace dg {

class Arena {
public:
  Arena() = default;
  ~Arena();
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;

  /// Maps `bytes` zeroed bytes, page-aligned, on huge pages where the system gives them.
  static Result<Arena> map(uint64_t bytes);
  std::byte *data() const { return start; }
  uint64_t bytes() const { return size; }

private:
  std::byte *start = nullptr;
  uint64_t size = 0;
};

} // namespace dg
