// SPDX-License-Identifier: Apache-2.0
// A directed graph of whole-number weights, as the acyclic partition works on it: what it contracts and refines many
// times over, so plain arrays and no names. Const once made: any thread may read it.
#pragma once

#include "partitioner/model/GraphAlgorithms.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dg::partitioner {

class WeightedDag {
public:
  struct Edge {
    uint32_t from = 0, to = 0;
    uint64_t weight = 0;
  };
  /// The other end of an edge, and its weight.
  struct Arc {
    uint32_t node = 0;
    uint64_t weight = 0;
  };

  WeightedDag() = default;
  /// Ends must be below the number of weights. Parallel edges are added up, loops are left out. O(V + E log E).
  WeightedDag(std::vector<uint64_t> weights, std::vector<Edge> edges);

  uint32_t numNodes() const { return uint32_t(nodeWeights.size()); }
  uint64_t weight(uint32_t node) const { return nodeWeights[node]; }
  uint64_t totalWeight() const { return total; }
  const std::vector<Edge> &edges() const { return allEdges; }
  std::vector<DirectedEdge> directedEdges() const; ///< as GraphAlgorithms takes them
  std::span<const Arc> outs(uint32_t node) const { return arcsOf(outArcs, outBegins, node); }
  std::span<const Arc> ins(uint32_t node) const { return arcsOf(inArcs, inBegins, node); }

  /// The nodes, each after those it has edges from, of the ready ones the smallest first. Shorter than the graph where
  /// there is a cycle. O(E + V log V).
  std::vector<uint32_t> topologicalOrder() const;

  /// The same with the caller's choice among the ready ones. `release(node, position)` is told of each node when all
  /// that it has edges from have their place and `position` nodes are placed; `take()` returns one of the released.
  template <typename Release, typename Take> std::vector<uint32_t> topologicalOrder(Release release, Take take) const {
    std::vector<uint32_t> order, numWaiting(numNodes());
    order.reserve(numNodes());
    size_t numReady = 0;
    auto free = [&](uint32_t node) {
      release(node, order.size());
      ++numReady;
    };
    for (uint32_t v = 0; v < numNodes(); ++v)
      if (numWaiting[v] = uint32_t(ins(v).size()); numWaiting[v] == 0)
        free(v);
    for (; numReady > 0; --numReady) {
      order.push_back(take());
      for (const Arc &arc : outs(order.back()))
        if (--numWaiting[arc.node] == 0)
          free(arc.node);
    }
    return order;
  }

private:
  static std::span<const Arc> arcsOf(const std::vector<Arc> &arcs, const std::vector<uint32_t> &begins, uint32_t node) {
    return std::span(arcs).subspan(begins[node], begins[node + 1] - begins[node]);
  }

  std::vector<uint64_t> nodeWeights;
  std::vector<Edge> allEdges; ///< by from, then to
  std::vector<Arc> outArcs, inArcs;
  std::vector<uint32_t> outBegins, inBegins; ///< of a node's arcs, one more than nodes
  uint64_t total = 0;
};

/// Edges between different parts, by weight.
uint64_t cutWeight(const WeightedDag &dag, const std::vector<uint32_t> &parts);

/// Weights of the nodes of each part.
std::vector<uint64_t> partWeights(const WeightedDag &dag, const std::vector<uint32_t> &parts, uint32_t numParts);

} // namespace dg::partitioner
