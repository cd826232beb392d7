// SPDX-License-Identifier: Apache-2.0
#include "partitioner/model/Graph.h"

#include "partitioner/model/GraphAlgorithms.h"
#include "partitioner/model/WeightedDag.h"

#include <cassert>

namespace dg::partitioner {

NodeId Graph::addNode(Node node) {
  allNodes.push_back(std::move(node));
  return NodeId(allNodes.size() - 1);
}

void Graph::addEdge(Edge edge) {
  assert(edge.from < allNodes.size() && edge.to < allNodes.size() && "edge to a node that was not added");
  allEdges.push_back(edge);
}

/// Names of nodes, at most ten of them.
static std::string namesOf(const std::vector<NodeId> &ids, const std::vector<Node> &nodes) {
  constexpr size_t most = 10;
  std::string names;
  for (size_t i = 0; i < std::min(ids.size(), most); ++i)
    names += fmt::format("{}'{}'", i ? ", " : "", nodes[ids[i]].name);
  return ids.size() > most ? fmt::format("{} and {} more", names, ids.size() - most) : names;
}

Result<std::vector<NodeId>> Graph::topologicalOrder() const {
  std::vector<WeightedDag::Edge> edges;
  std::vector<DirectedEdge> ends;
  bool hasLoop = false;
  for (const Edge &edge : allEdges) {
    edges.push_back({edge.from, edge.to});
    ends.push_back({edge.from, edge.to});
    hasLoop = hasLoop || edge.from == edge.to;
  }
  std::vector<NodeId> order = WeightedDag(std::vector<uint64_t>(allNodes.size()), std::move(edges)).topologicalOrder();
  if (hasLoop || order.size() < allNodes.size())
    return Status::error(ErrorKind::badInput,
                         "the graph has a cycle through {}; every op must come after the ops whose results it uses",
                         namesOf(nodesOnCycles(uint32_t(allNodes.size()), ends), allNodes));
  return order;
}

} // namespace dg::partitioner
