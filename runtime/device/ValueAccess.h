// SPDX-License-Identifier: Apache-2.0
// The values of one rank for everyone who is neither a kernel nor a device: sessions, checkpoints, checks. They see
// bytes in host memory for the length of a call, and never learn where a value lies.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <functional>
#include <span>

namespace dg {

class ValueAccess {
public:
  using Use = std::function<Status(std::span<const std::byte>)>;
  using Write = std::function<void(std::span<std::byte>)>;
  virtual ~ValueAccess() = default;

  /// Calls `use` with the bytes of slot `slot % slots` of a value, and returns what it returned. Fails (usage) where
  /// this rank's stage does not have the value.
  virtual Status inspect(plan::ValueId value, uint32_t slot, const Use &use) const = 0;
  /// Calls `write` once to write all bytes of the slot. Fails as `inspect` does; `write` is then not called.
  virtual Status fill(plan::ValueId value, uint32_t slot, const Write &write) = 0;
};

} // namespace dg
