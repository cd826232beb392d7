// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/SharedSegment.h"

#include <algorithm>
#include <numeric>

namespace dg {

/// More threads than this share blocks: a block is a cache line, of every node.
static constexpr uint32_t maxBlocks = 16;

SharedSegment::SharedSegment(const Segment &segment, uint32_t threads)
    : numWords((segment.nodes.size() + 63) / 64), order(segment.nodes.size()), position(segment.nodes.size()),
      states(segment.nodes.size()), ready(numWords), forCaller(numWords) {
  size_t count = segment.nodes.size();
  std::vector<double> wayToEnd(count, 0);
  for (size_t node = count; node-- > 0;) {
    for (uint32_t i = segment.successorsBegin[node]; i < segment.successorsBegin[node + 1]; ++i)
      wayToEnd[node] = std::max(wayToEnd[node], wayToEnd[segment.successors[i]]);
    wayToEnd[node] += segment.costs[node];
  }
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return wayToEnd[a] != wayToEnd[b] ? wayToEnd[a] > wayToEnd[b] : a < b; });
  for (size_t bit = 0; bit < count; ++bit)
    position[order[bit]] = uint32_t(bit);
  uint32_t numBlocks = 0;
  for (size_t node = 0; node < count; ++node) {
    uint32_t tiles = segment.nodes[node].tiles;
    states[node].openBlocks = 0;
    states[node].undone = tiles;
    states[node].pending = segment.numDependencies[node];
    states[node].firstBlock = numBlocks;
    states[node].numBlocks = segment.nodes[node].isCallerOnly() ? 0 : std::min({threads, tiles, maxBlocks});
    numBlocks += states[node].numBlocks;
  }
  blocks = std::vector<TileBlock>(numBlocks);
  for (size_t node = 0; node < count; ++node)
    for (uint32_t i = 0; i < states[node].numBlocks; ++i) {
      TileBlock &block = blocks[states[node].firstBlock + i];
      uint64_t tiles = segment.nodes[node].tiles;
      block.begin = uint32_t(tiles * i / states[node].numBlocks);
      block.next = block.end = uint32_t(tiles * (i + 1) / states[node].numBlocks);
    }
}

} // namespace dg
