// SPDX-License-Identifier: Apache-2.0
#include "partitioner/model/WeightedDag.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace dg::partitioner {

WeightedDag::WeightedDag(std::vector<uint64_t> weights, std::vector<Edge> edges)
    : nodeWeights(std::move(weights)), total(std::accumulate(nodeWeights.begin(), nodeWeights.end(), uint64_t(0))) {
  std::sort(edges.begin(), edges.end(),
            [](const Edge &a, const Edge &b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  for (const Edge &edge : edges) {
    if (edge.from == edge.to)
      continue;
    if (!allEdges.empty() && allEdges.back().from == edge.from && allEdges.back().to == edge.to)
      allEdges.back().weight += edge.weight;
    else
      allEdges.push_back(edge);
  }
  outBegins.assign(nodeWeights.size() + 1, 0);
  inBegins.assign(nodeWeights.size() + 1, 0);
  for (const Edge &edge : allEdges) {
    ++outBegins[edge.from + 1];
    ++inBegins[edge.to + 1];
  }
  std::partial_sum(outBegins.begin(), outBegins.end(), outBegins.begin());
  std::partial_sum(inBegins.begin(), inBegins.end(), inBegins.begin());
  outArcs.reserve(allEdges.size());
  inArcs.resize(allEdges.size());
  std::vector<uint32_t> next(inBegins.begin(), inBegins.end());
  for (const Edge &edge : allEdges) {
    outArcs.push_back({edge.to, edge.weight});
    inArcs[next[edge.to]++] = {edge.from, edge.weight};
  }
}

std::vector<DirectedEdge> WeightedDag::directedEdges() const {
  std::vector<DirectedEdge> result;
  result.reserve(allEdges.size());
  for (const Edge &edge : allEdges)
    result.push_back({edge.from, edge.to});
  return result;
}

std::vector<uint32_t> WeightedDag::topologicalOrder() const {
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  return topologicalOrder([&](uint32_t node, size_t) { ready.push(node); },
                          [&] {
                            uint32_t node = ready.top();
                            ready.pop();
                            return node;
                          });
}

uint64_t cutWeight(const WeightedDag &dag, const std::vector<uint32_t> &parts) {
  uint64_t cut = 0;
  for (const WeightedDag::Edge &edge : dag.edges())
    cut += parts[edge.from] != parts[edge.to] ? edge.weight : 0;
  return cut;
}

std::vector<uint64_t> partWeights(const WeightedDag &dag, const std::vector<uint32_t> &parts, uint32_t numParts) {
  std::vector<uint64_t> weights(numParts);
  for (uint32_t v = 0; v < dag.numNodes(); ++v)
    weights[parts[v]] += dag.weight(v);
  return weights;
}

} // namespace dg::partitioner
