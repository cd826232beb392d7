// SPDX-License-Identifier: Apache-2.0
// The one block of memory of a rank: every value of its stage has its place in it, decided by dgc.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace dg {

class HostMemory;

class Arena {
public:
  Arena() = default;
  ~Arena();
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;

  /// Maps `bytes` zeroed bytes, page-aligned, on huge pages where the system gives them.
  static Result<Arena> map(uint64_t bytes);
  /// Takes the first bytes of the memory that the ranks of a host share; they are zero. Others will look only at these
  /// ranges, (begin, end). The memory outlives the arena and serves no other.
  static Result<Arena> over(HostMemory &memory, uint64_t bytes,
                            std::vector<std::pair<uint64_t, uint64_t>> seenByOthers);
  std::byte *data() const { return start; }
  uint64_t bytes() const { return size; }
  /// Slot `slot % value.slots` of a value of this stage.
  std::byte *addressOf(const plan::Value &value, uint64_t slot = 0) const {
    return start + value.offset + (value.slots > 1 ? slot % value.slots * value.stride : 0);
  }

private:
  std::byte *start = nullptr;
  uint64_t size = 0;
  bool isOwned = true;
};

} // namespace dg
