// SPDX-License-Identifier: Apache-2.0
// Which tasks of a chunk are ordered: transitive reachability over dependencies. Private to this folder.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dg::plan {

/// One bit per pair of tasks: O(n·deps·n/64) time and n²/8 bytes, 2 MB for 4,000 tasks. Tasks are named by their
/// position in the chunk. The chunk's dependencies must be known to point backwards.
class ChunkOrder {
public:
  ChunkOrder(const Plan &plan, const Chunk &chunk, const std::vector<uint32_t> &positionOf);

  /// Whether the task at `first` is complete before the one at `second` starts, whatever the executor does.
  bool isBefore(size_t first, size_t second) const {
    return first < second && (bits[second * words + first / 64] >> (first % 64) & 1);
  }

private:
  size_t words;
  std::vector<uint64_t> bits; ///< row i: the ancestors of task i
};

} // namespace dg::plan
