// SPDX-License-Identifier: Apache-2.0
// Greedy packing: each order places the blocks one by one into the best gap left by those it meets in time; the
// smallest arena of all orders wins.
#include "partitioner/memory/Arena.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace dg::partitioner {

namespace {

uint64_t roundUp(uint64_t bytes) { return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment; }

/// A sweep over the moments where a block begins or has ended. O(n log n).
uint64_t mostLiveBytes(const std::vector<Block> &blocks) {
  std::vector<std::pair<uint64_t, uint64_t>> changes; // (moment, bytes added, modulo 2^64); ends before begins
  changes.reserve(2 * blocks.size());
  for (const Block &block : blocks) {
    changes.emplace_back(2 * uint64_t(block.firstUse) + 1, roundUp(block.bytes));
    changes.emplace_back(2 * (uint64_t(block.lastUse) + 1), uint64_t(0) - roundUp(block.bytes));
  }
  std::sort(changes.begin(), changes.end());
  uint64_t live = 0, most = 0;
  for (auto [moment, bytes] : changes) {
    live += bytes;
    if (moment % 2 == 1)
      most = std::max(most, live);
  }
  return most;
}

/// Above this the third order, which gains half a percent in the mean, is not worth its 0.5 s.
constexpr size_t mostBlocksForAllOrders = 8192;

struct Placed {
  uint64_t begin, end;
  uint32_t firstUse, lastUse;
};

/// The smallest gap between the neighbours in time that holds `bytes`, else the end of them all. `placed` is sorted by
/// offset; `neighbours` has room for one pointer more than it. The filter has no branch: whether two blocks meet in
/// time is a coin toss to the predictor, and this loop is where the time goes.
uint64_t findOffset(const std::vector<Placed> &placed, Block block, uint64_t bytes,
                    std::vector<const Placed *> &neighbours) {
  const Placed **kept = neighbours.data();
  for (const Placed &other : placed) {
    *kept = &other;
    kept += (other.lastUse >= block.firstUse) & (other.firstUse <= block.lastUse);
  }
  constexpr uint64_t none = std::numeric_limits<uint64_t>::max();
  uint64_t top = 0, bestOffset = 0, bestGap = none;
  for (const Placed **other = neighbours.data(); other != kept; ++other) {
    uint64_t gap = (*other)->begin > top ? (*other)->begin - top : 0;
    if (gap >= bytes && gap < bestGap) {
      bestGap = gap;
      bestOffset = top;
      if (gap == bytes)
        break;
    }
    top = std::max(top, (*other)->end);
  }
  return bestGap == none ? top : bestOffset;
}

Packing packInOrder(const std::vector<Block> &blocks, const std::vector<uint32_t> &order) {
  Packing packing;
  packing.offsets.assign(blocks.size(), 0);
  std::vector<Placed> placed;
  placed.reserve(blocks.size());
  std::vector<const Placed *> neighbours(blocks.size() + 1);
  for (uint32_t index : order) {
    const Block &block = blocks[index];
    uint64_t bytes = roundUp(block.bytes);
    if (bytes == 0)
      continue;
    uint64_t offset = findOffset(placed, block, bytes, neighbours);
    packing.offsets[index] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                               [](uint64_t value, const Placed &other) { return value < other.begin; });
    placed.insert(at, {offset, offset + bytes, block.firstUse, block.lastUse});
  }
  return packing;
}

bool isLarger(const Block &a, const Block &b) { return a.bytes > b.bytes; }

bool isEarlier(const Block &a, const Block &b) {
  return a.firstUse != b.firstUse ? a.firstUse < b.firstUse : a.bytes > b.bytes;
}

bool livesLonger(const Block &a, const Block &b) {
  uint32_t lengthA = a.lastUse - a.firstUse, lengthB = b.lastUse - b.firstUse;
  return lengthA != lengthB ? lengthA > lengthB : a.bytes > b.bytes;
}

} // namespace

Packing packArena(const std::vector<Block> &blocks) {
  for ([[maybe_unused]] const Block &block : blocks)
    assert(block.firstUse <= block.lastUse && "a block that dies before it is born");
  uint64_t lowerBound = mostLiveBytes(blocks);
  Packing best;
  best.bytes = std::numeric_limits<uint64_t>::max();
  for (auto comesFirst : {isLarger, isEarlier, livesLonger}) {
    if (comesFirst == livesLonger && blocks.size() > mostBlocksForAllOrders)
      break;
    std::vector<uint32_t> order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      bool isBefore = comesFirst(blocks[a], blocks[b]), isAfter = comesFirst(blocks[b], blocks[a]);
      return isBefore || (!isAfter && a < b);
    });
    Packing packing = packInOrder(blocks, order);
    if (packing.bytes < best.bytes)
      best = std::move(packing);
    if (best.bytes == lowerBound)
      break;
  }
  best.lowerBoundBytes = lowerBound;
  return best;
}

} // namespace dg::partitioner
