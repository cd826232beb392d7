// SPDX-License-Identifier: Apache-2.0
#include "partitioner/model/GraphAlgorithms.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>

#include <algorithm>
#include <ranges>

namespace dg::partitioner {

namespace {

/// Arrays without pointers: the fastest form of a graph of some hundred thousand nodes.
using CompactGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                        boost::no_property, uint32_t, uint32_t>;

CompactGraph makeGraph(uint32_t numNodes, std::span<const DirectedEdge> edges) {
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), numNodes};
}

} // namespace

std::vector<uint32_t> nodesOnCycles(uint32_t numNodes, std::span<const DirectedEdge> edges) {
  CompactGraph graph = makeGraph(numNodes, edges);
  std::vector<uint32_t> component(numNodes), size(numNodes), nodes;
  boost::strong_components(graph,
                           boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  for (uint32_t own : component)
    ++size[own];
  std::vector<bool> hasLoop(numNodes);
  for (auto [from, to] : edges)
    if (from == to)
      hasLoop[from] = true;
  for (uint32_t node = 0; node < numNodes; ++node)
    if (size[component[node]] > 1 || hasLoop[node])
      nodes.push_back(node);
  return nodes;
}

std::optional<std::vector<uint32_t>> longestWays(uint32_t numNodes, std::span<const DirectedEdge> edges) {
  CompactGraph graph = makeGraph(numNodes, edges);
  std::vector<uint32_t> order, ways(numNodes); // the order has the last node first
  order.reserve(numNodes);
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag &) {
    return std::nullopt;
  }
  for (uint32_t node : order | std::views::reverse)
    for (auto [edge, end] = boost::out_edges(node, graph); edge != end; ++edge) {
      uint32_t &way = ways[boost::target(*edge, graph)];
      way = std::max(way, ways[node] + 1);
    }
  return ways;
}

} // namespace dg::partitioner
