// SPDX-License-Identifier: Apache-2.0
// Two exact dynamic programs over the costly nodes: the least possible largest stage time, then the fewest crossing
// bytes among the cuts that reach it. (One program over pairs would be wrong: a prefix that is slower than another may
// still be the better one when a later stage is slower than both.)
#include "partitioner/search/Stages.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace dg::partitioner {

namespace {

using Picoseconds = uint64_t; // whole numbers: equal layers tie exactly, and sums do not depend on their order

/// The graph laid out on the line of its costly nodes.
struct Line {
  std::vector<NodeId> costly;          ///< in topological order
  std::vector<uint32_t> position;      ///< per node: the costly node it goes with
  std::vector<Picoseconds> prefixTime; ///< of the first i costly nodes
  std::vector<uint64_t> crossingBytes; ///< of a cut in front of costly node i
};

constexpr uint32_t unknown = std::numeric_limits<uint32_t>::max();

Picoseconds timeOf(const Node &node, const CostModel &costs) {
  return std::max<Picoseconds>(1, Picoseconds(std::llround(costs.kernelUs(node.flops, node.bytes, node.dtype) * 1e6)));
}

/// Free nodes go with their first consumer, those that nobody consumes with their last producer.
void placeFreeNodes(const Graph &graph, const std::vector<NodeId> &order, std::vector<uint32_t> &position) {
  std::vector<std::vector<NodeId>> users(position.size()), producers(position.size());
  for (const Edge &edge : graph.edges()) {
    users[edge.from].push_back(edge.to);
    producers[edge.to].push_back(edge.from);
  }
  for (auto v = order.rbegin(); v != order.rend(); ++v)
    if (graph.nodes()[*v].isFree())
      for (NodeId user : users[*v])
        position[*v] = std::min(position[*v], position[user]);
  for (NodeId v : order) {
    if (position[v] != unknown)
      continue;
    position[v] = 0;
    for (NodeId producer : producers[v])
      position[v] = std::max(position[v], position[producer]);
  }
}

/// For every cut the bytes of the values that live across it; a value with several users counts once.
std::vector<uint64_t> countCrossingBytes(const Graph &graph, const std::vector<uint32_t> &position, size_t numCostly) {
  std::vector<Edge> edges = graph.edges();
  std::sort(edges.begin(), edges.end(), [](const Edge &a, const Edge &b) {
    return std::tie(a.from, a.result, a.to) < std::tie(b.from, b.result, b.to);
  });
  std::vector<uint64_t> change(numCostly + 1); // differences, modulo 2^64
  for (size_t i = 0; i < edges.size();) {
    uint32_t last = 0;
    uint64_t bytes = 0;
    size_t j = i;
    for (; j < edges.size() && edges[j].from == edges[i].from && edges[j].result == edges[i].result; ++j) {
      last = std::max(last, position[edges[j].to]);
      bytes = std::max(bytes, edges[j].bytes);
    }
    change[position[edges[i].from] + 1] += bytes;
    change[last + 1] -= bytes;
    i = j;
  }
  for (size_t i = 1; i < change.size(); ++i)
    change[i] += change[i - 1];
  return change;
}

Result<Line> layOut(const Graph &graph, const CostModel &costs) {
  Result<std::vector<NodeId>> order = graph.topologicalOrder();
  if (!order)
    return order.status();
  Line line;
  line.position.assign(graph.nodes().size(), unknown);
  line.prefixTime = {0};
  for (NodeId v : *order) {
    const Node &node = graph.nodes()[v];
    if (node.isFree())
      continue;
    line.position[v] = uint32_t(line.costly.size());
    line.costly.push_back(v);
    line.prefixTime.push_back(line.prefixTime.back() + timeOf(node, costs));
  }
  if (!line.costly.empty()) {
    placeFreeNodes(graph, *order, line.position);
    line.crossingBytes = countCrossingBytes(graph, line.position, line.costly.size());
  }
  return line;
}

/// The least T such that `numStages` non-empty groups of at most T exist. For k groups over the first i nodes the last
/// group starts where best(k-1, j), which grows with j, meets time(j, i), which shrinks: a binary search.
Picoseconds leastLargestTime(const Line &line, uint32_t numStages) {
  const size_t n = line.costly.size();
  const std::vector<Picoseconds> &prefix = line.prefixTime;
  std::vector<Picoseconds> before(prefix), best(n + 1);
  for (uint32_t k = 2; k <= numStages; ++k) {
    for (size_t i = k; i <= n; ++i) {
      size_t low = k - 1, high = i - 1; // the first j in [low, high] with before[j] >= time(j, i), else high
      while (low < high) {
        size_t middle = (low + high) / 2;
        if (before[middle] >= prefix[i] - prefix[middle])
          high = middle;
        else
          low = middle + 1;
      }
      best[i] = std::max(before[low], prefix[i] - prefix[low]);
      if (low > k - 1)
        best[i] = std::min(best[i], std::max(before[low - 1], prefix[i] - prefix[low - 1]));
    }
    std::swap(before, best);
  }
  return before[n];
}

/// The first node of every stage but the first, with the fewest crossing bytes among the cuts whose stages all take at
/// most `limit`. The last group may start in a window that only moves forward: a monotone queue, O(n) for each stage.
std::vector<size_t> fewestCrossingBytes(const Line &line, uint32_t numStages, Picoseconds limit) {
  const size_t n = line.costly.size();
  constexpr uint64_t impossible = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> before(n + 1, impossible), best(n + 1);
  std::vector<std::vector<uint32_t>> start(numStages, std::vector<uint32_t>(n + 1));
  for (size_t i = 1; i <= n && line.prefixTime[i] <= limit; ++i)
    before[i] = 0;
  for (uint32_t k = 1; k < numStages; ++k) {
    std::fill(best.begin(), best.end(), impossible);
    std::deque<std::pair<uint64_t, size_t>> window; // (bytes with the cut in front of j, j), bytes increasing
    for (size_t i = k + 1; i <= n; ++i) {
      size_t j = i - 1;
      if (before[j] != impossible) {
        uint64_t bytes = before[j] + line.crossingBytes[j];
        while (!window.empty() && window.back().first > bytes)
          window.pop_back();
        window.emplace_back(bytes, j);
      }
      while (!window.empty() && line.prefixTime[i] - line.prefixTime[window.front().second] > limit)
        window.pop_front();
      if (!window.empty())
        std::tie(best[i], start[k][i]) = window.front();
    }
    std::swap(before, best);
  }
  std::vector<size_t> cuts(numStages - 1);
  for (uint32_t k = numStages - 1, i = uint32_t(n); k > 0; --k)
    cuts[k - 1] = i = start[k][i];
  return cuts;
}

} // namespace

Result<std::vector<uint32_t>> balanceStages(const Graph &graph, uint32_t numStages, const CostModel &costs) {
  if (numStages == 0)
    return Status::error(ErrorKind::usage, "0 pipeline stages were asked for; there must be at least 1");
  Result<Line> line = layOut(graph, costs);
  if (!line)
    return line.status();
  if (numStages == 1)
    return std::vector<uint32_t>(graph.nodes().size(), 0);
  if (numStages > line->costly.size())
    return Status::error(ErrorKind::usage,
                         "{} pipeline stages were asked for, but the graph has only {} ops that compute something; "
                         "use at most pipe={}",
                         numStages, line->costly.size(), std::max<size_t>(1, line->costly.size()));
  std::vector<size_t> cuts = fewestCrossingBytes(*line, numStages, leastLargestTime(*line, numStages));
  std::vector<uint32_t> stages;
  stages.reserve(line->position.size());
  for (uint32_t position : line->position)
    stages.push_back(uint32_t(std::upper_bound(cuts.begin(), cuts.end(), position) - cuts.begin()));
  return stages;
}

} // namespace dg::partitioner
