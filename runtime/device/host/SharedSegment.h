// SPDX-License-Identifier: Apache-2.0
// What threads share about a segment that they run together.
#pragma once

#include "runtime/device/Segment.h"

#include <atomic>

namespace dg {

/// What threads share about a node while its segment runs. The counters restore themselves as they run out, so that a
/// segment needs no clearing between two runs.
struct alignas(64) NodeState {
  std::atomic<uint32_t> openBlocks; ///< blocks with tiles to claim
  std::atomic<uint32_t> undone;     ///< tiles not yet complete
  std::atomic<uint32_t> pending;    ///< dependencies not yet complete
  uint32_t firstBlock, numBlocks;   ///< in SharedSegment::blocks; none of a node that only the calling thread runs
};

/// Tiles begin to end of a node, which one thread takes before any other. Threads take the same block of every node:
/// what a thread has written in one node is then in its own cache in the next.
struct alignas(64) TileBlock {
  std::atomic<uint32_t> next; ///< the first that nobody has claimed; end or more: nothing to claim
  uint32_t begin, end;
};

/// The shared part of a segment; exists only when a rank has several threads and the segment work for them. Bit p of
/// the words stands for node order[p], the longest way to the end of the segment first.
struct SharedSegment final : PreparedWork {
  SharedSegment(const Segment &segment, uint32_t threads);
  size_t numWords;
  std::vector<uint32_t> order, position; ///< node of a bit, bit of a node
  std::vector<NodeState> states;
  std::vector<TileBlock> blocks;
  std::vector<std::atomic<uint64_t>> ready;                 ///< nodes with tiles to claim
  alignas(64) std::vector<std::atomic<uint64_t>> forCaller; ///< caller-only nodes to be advanced
  alignas(64) std::atomic<uint32_t> remaining{0};           ///< nodes not yet complete
  uint32_t index = 0;                                       ///< of this run
};

} // namespace dg
