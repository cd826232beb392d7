// SPDX-License-Identifier: Apache-2.0
// Proves that the topological order keeps the source order where it may, and that a cycle is named.
#include "partitioner/model/Graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace dg;
using namespace dg::partitioner;

static Graph makeGraph(uint32_t numNodes, const std::vector<std::pair<NodeId, NodeId>> &edges) {
  Graph graph;
  for (uint32_t v = 0; v < numNodes; ++v)
    graph.addNode({.name = fmt::format("op{}", v), .flops = 1});
  for (auto [from, to] : edges)
    graph.addEdge({from, to, 4});
  return graph;
}

// An order that is already topological is kept as it is.
TEST(GraphTest, KeepsSourceOrder) {
  Graph graph = makeGraph(5, {{0, 3}, {1, 2}, {2, 4}, {3, 4}, {1, 2}});
  EXPECT_EQ(*graph.topologicalOrder(), (std::vector<NodeId>{0, 1, 2, 3, 4}));
}

// A use before its definition moves only what must move.
TEST(GraphTest, MovesOnlyWhatMustMove) {
  Graph graph = makeGraph(4, {{2, 0}});
  EXPECT_EQ(*graph.topologicalOrder(), (std::vector<NodeId>{1, 2, 0, 3}));
}

// On random DAGs with shuffled names the order is the lexicographically smallest one, found by repeated search.
TEST(GraphTest, EqualsRepeatedSearch) {
  const uint32_t seed = 20261116;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    uint32_t n = 1 + random() % 12;
    std::vector<NodeId> rank(n);
    for (uint32_t v = 0; v < n; ++v)
      rank[v] = v;
    std::shuffle(rank.begin(), rank.end(), random);
    std::vector<std::pair<NodeId, NodeId>> edges;
    for (uint32_t a = 0; a < n; ++a)
      for (uint32_t b = a + 1; b < n; ++b)
        if (random() % 4 == 0)
          edges.emplace_back(rank[a], rank[b]);
    std::vector<NodeId> expected;
    std::vector<bool> isDone(n);
    while (expected.size() < n)
      for (NodeId v = 0; v < n; ++v) {
        if (isDone[v] ||
            std::any_of(edges.begin(), edges.end(), [&](auto e) { return e.second == v && !isDone[e.first]; }))
          continue;
        isDone[v] = true;
        expected.push_back(v);
        break;
      }
    EXPECT_EQ(*makeGraph(n, edges).topologicalOrder(), expected);
  }
}

// A cycle is an error that names the nodes on it and no others.
TEST(GraphTest, NamesCycle) {
  Result<std::vector<NodeId>> order = makeGraph(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}, {4, 4}}).topologicalOrder();
  ASSERT_FALSE(order);
  EXPECT_EQ(order.status().kind(), ErrorKind::badInput);
  EXPECT_NE(order.status().message().find("'op1', 'op2', 'op4'"), std::string::npos) << order.status().message();
  EXPECT_EQ(order.status().message().find("'op3'"), std::string::npos);
}
