// SPDX-License-Identifier: Apache-2.0
// Packs buffers with known lifetimes into one arena: dynamic storage allocation, off line. The problem is NP-hard
// (Garey and Johnson, SR2); greedy placement comes within a few percent of the lower bound on training graphs.
#pragma once

#include <cstdint>
#include <vector>

namespace dg::partitioner {

inline constexpr uint64_t arenaAlignment = 64;

/// A buffer that lives from firstUse to lastUse, both included (any monotone clock: the position in the order of
/// tasks).
struct Block {
  uint64_t bytes = 0;
  uint32_t firstUse = 0, lastUse = 0;
};

struct Packing {
  std::vector<uint64_t> offsets; ///< one for each block, multiples of arenaAlignment
  uint64_t bytes = 0;            ///< size of the arena, a multiple of arenaAlignment
  uint64_t lowerBoundBytes = 0;  ///< most bytes alive at one moment, each block rounded up: no packing is smaller
};

/// Blocks whose lifetimes intersect never overlap in memory. The best of several greedy orders (largest first, as in
/// Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020; first use first; …), each
/// block put into the smallest gap that holds it. Deterministic. O(n²) with a small constant: 20,000 blocks take under
/// 2 s. Requires firstUse <= lastUse.
Packing packArena(const std::vector<Block> &blocks);

} // namespace dg::partitioner
