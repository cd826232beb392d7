// SPDX-License-Identifier: Apache-2.0
// The model as the partitioner sees it: nodes with their cost, edges with their bytes. Not thread-safe while it is
// being built; const methods may be called by any thread.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dg::partitioner {

using NodeId = uint32_t; ///< index into Graph::nodes, in the order of the source

/// One op. A node without flops and without bytes is free: a parameter, an input, a reshape.
struct Node {
  std::string name;
  double flops = 0;            ///< of one micro-batch
  double bytes = 0;            ///< read and written, of one micro-batch
  uint64_t parameterBytes = 0; ///< of the parameter that this node is, if it is one
  plan::DType dtype = plan::DType::f32;
  bool isFree() const { return flops <= 0 && bytes <= 0; }
};

/// A use. Edges with equal `from` and `result` carry the same value, which crosses a cut once.
struct Edge {
  NodeId from = 0, to = 0;
  uint64_t bytes = 0;
  uint32_t result = 0; ///< which result of `from`
};

class Graph {
public:
  /// Nodes are added in source order; the id is the position.
  NodeId addNode(Node node);
  /// Both ends must have been added. Parallel edges are allowed.
  void addEdge(Edge edge);

  const std::vector<Node> &nodes() const { return allNodes; }
  const std::vector<Edge> &edges() const { return allEdges; }

  /// A topological order that keeps the source order wherever the edges allow it: among the nodes that are ready, the
  /// one with the smallest id comes first. Fails (badInput) on a cycle, and names the nodes on it. O(E + V log V).
  Result<std::vector<NodeId>> topologicalOrder() const;

private:
  std::vector<Node> allNodes;
  std::vector<Edge> allEdges;
};

} // namespace dg::partitioner
