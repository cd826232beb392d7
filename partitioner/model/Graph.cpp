// SPDX-License-Identifier: Apache-2.0
// The only file that includes Boost.Graph.
#include "partitioner/model/Graph.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

#include <algorithm>
#include <cassert>
#include <functional>
#include <queue>

namespace dg::partitioner {

struct Graph::Adjacency {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS> graph;
};

Graph::Graph() : adjacency(std::make_unique<Adjacency>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph &&) noexcept = default;
Graph &Graph::operator=(Graph &&) noexcept = default;

NodeId Graph::addNode(Node node) {
  allNodes.push_back(std::move(node));
  return NodeId(boost::add_vertex(adjacency->graph));
}

void Graph::addEdge(Edge edge) {
  assert(edge.from < allNodes.size() && edge.to < allNodes.size() && "edge to a node that was not added");
  allEdges.push_back(edge);
  boost::add_edge(edge.from, edge.to, adjacency->graph);
}

/// The names of the nodes on cycles, at most ten of them.
template <typename BoostGraph>
static std::string describeCycle(const BoostGraph &graph, const std::vector<Node> &nodes) {
  std::vector<size_t> component(nodes.size()), size(nodes.size());
  boost::strong_components(graph,
                           boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  for (size_t c : component)
    ++size[c];
  std::string names;
  size_t numNamed = 0, numCyclic = 0;
  for (size_t v = 0; v < nodes.size(); ++v) {
    if (size[component[v]] < 2 && !boost::edge(v, v, graph).second)
      continue;
    if (++numCyclic > 10)
      continue;
    names += fmt::format("{}'{}'", numNamed++ ? ", " : "", nodes[v].name);
  }
  return numCyclic > numNamed ? fmt::format("{} and {} more", names, numCyclic - numNamed) : names;
}

Result<std::vector<NodeId>> Graph::topologicalOrder() const {
  // Kahn's algorithm with a heap. boost::topological_sort is depth first and would not keep the source order.
  const auto &graph = adjacency->graph;
  std::vector<size_t> numWaiting(allNodes.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId v = 0; v < allNodes.size(); ++v) {
    numWaiting[v] = boost::in_degree(v, graph);
    if (numWaiting[v] == 0)
      ready.push(v);
  }
  std::vector<NodeId> order;
  order.reserve(allNodes.size());
  while (!ready.empty()) {
    NodeId v = ready.top();
    ready.pop();
    order.push_back(v);
    for (auto [edge, end] = boost::out_edges(v, graph); edge != end; ++edge)
      if (NodeId to = NodeId(boost::target(*edge, graph)); --numWaiting[to] == 0)
        ready.push(to);
  }
  if (order.size() < allNodes.size())
    return Status::error(ErrorKind::badInput,
                         "the graph has a cycle through {}; every op must come after the ops whose results it uses",
                         describeCycle(graph, allNodes));
  return order;
}

} // namespace dg::partitioner
