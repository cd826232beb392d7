// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/OrderedCuts.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace dg::partitioner {

using Arc = WeightedDag::Arc;

std::vector<uint32_t> drawOrder(const WeightedDag &dag, OrderKind kind, std::mt19937_64 &random) {
  struct Ready {
    int64_t rank;
    uint64_t tie;
    uint32_t node;
    bool operator<(const Ready &other) const { return std::tie(rank, tie) < std::tie(other.rank, other.tie); }
  };
  std::priority_queue<Ready> ready; // the largest rank first
  auto release = [&](uint32_t node, size_t position) {
    int64_t rank = 0;
    if (kind == OrderKind::depthFirst)
      rank = int64_t(position);
    for (const Arc &arc : dag.ins(node))
      rank += kind == OrderKind::fewestAlive ? int64_t(arc.weight) : 0;
    for (const Arc &arc : dag.outs(node))
      rank -= kind == OrderKind::fewestAlive ? int64_t(arc.weight) : 0;
    ready.push({rank, random(), node});
  };
  return dag.topologicalOrder(release, [&] {
    uint32_t node = ready.top().node;
    ready.pop();
    return node;
  });
}

std::optional<std::vector<uint32_t>> cutOrder(const WeightedDag &dag, const std::vector<uint32_t> &order,
                                              const PartLimits &limits) {
  const uint32_t n = dag.numNodes(), p = limits.numParts;
  constexpr uint64_t impossible = std::numeric_limits<uint64_t>::max();
  std::vector<uint32_t> position(n);
  for (uint32_t i = 0; i < n; ++i)
    position[order[i]] = i;
  // best[i * (p+1) + s]: the least cut of the first i nodes in s parts; each part pays for the edges that leave it.
  std::vector<uint64_t> best(size_t(n + 1) * (p + 1), impossible);
  std::vector<uint32_t> from(best.size());
  best[0] = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t *before = &best[size_t(i) * (p + 1)];
    uint32_t first = 0, last = p; // numbers of parts that the first i nodes can have
    while (first < p && before[first] == impossible)
      ++first;
    while (last > first && before[last - 1] == impossible)
      --last;
    if (first == last)
      continue;
    uint64_t weight = 0, leaving = 0;
    for (uint32_t j = i; j < n; ++j) { // the part i … j
      weight += dag.weight(order[j]);
      if (weight > limits.maxWeight)
        break;
      for (const Arc &arc : dag.outs(order[j]))
        leaving += arc.weight;
      for (const Arc &arc : dag.ins(order[j]))
        leaving -= position[arc.node] >= i ? arc.weight : 0;
      uint64_t *after = &best[size_t(j + 1) * (p + 1)];
      for (uint32_t s = first; s < last; ++s)
        if (before[s] != impossible && before[s] + leaving < after[s + 1]) {
          after[s + 1] = before[s] + leaving;
          from[size_t(j + 1) * (p + 1) + s + 1] = i;
        }
    }
  }
  if (best.back() == impossible)
    return std::nullopt;
  std::vector<uint32_t> parts(n);
  for (uint32_t s = p, end = n; s > 0; --s) {
    uint32_t begin = from[size_t(end) * (p + 1) + s];
    for (uint32_t i = begin; i < end; ++i)
      parts[order[i]] = s - 1;
    end = begin;
  }
  return parts;
}

uint64_t leastLargestWeight(const WeightedDag &dag, const std::vector<uint32_t> &order, uint32_t numParts) {
  uint64_t low = 0, high = dag.totalWeight(); // parts within `high` exist; those of a smaller number can be cut further
  auto isEnough = [&](uint64_t limit) {
    uint32_t count = 1;
    uint64_t weight = 0;
    for (uint32_t node : order) {
      if (dag.weight(node) > limit)
        return false;
      if (weight + dag.weight(node) > limit) {
        ++count;
        weight = 0;
      }
      weight += dag.weight(node);
    }
    return count <= numParts;
  };
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (isEnough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

} // namespace dg::partitioner
