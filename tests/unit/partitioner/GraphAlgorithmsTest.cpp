// SPDX-License-Identifier: Apache-2.0
// Proves the algorithms of Boost.Graph as we call them against ones that follow every way: cycles and longest ways of
// random graphs, with parallel edges and loops, and of chains that are longer than a stack is deep.
#include "partitioner/model/GraphAlgorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace dg::partitioner;

namespace {

std::vector<DirectedEdge> randomEdges(std::mt19937 &random, uint32_t numNodes, uint32_t numEdges, bool isAcyclic) {
  std::vector<uint32_t> rank(numNodes);
  for (uint32_t v = 0; v < numNodes; ++v)
    rank[v] = v;
  std::shuffle(rank.begin(), rank.end(), random);
  std::vector<DirectedEdge> edges;
  for (uint32_t i = 0; i < numEdges; ++i) {
    uint32_t a = random() % numNodes, b = random() % numNodes;
    if (isAcyclic && a == b)
      continue;
    edges.push_back(isAcyclic ? DirectedEdge{rank[std::min(a, b)], rank[std::max(a, b)]} : DirectedEdge{a, b});
  }
  return edges;
}

/// reaches[a][b]: over one edge or more; by Warshall's algorithm.
std::vector<std::vector<bool>> closureOf(uint32_t numNodes, const std::vector<DirectedEdge> &edges) {
  std::vector<std::vector<bool>> reaches(numNodes, std::vector<bool>(numNodes));
  for (auto [from, to] : edges)
    reaches[from][to] = true;
  for (uint32_t via = 0; via < numNodes; ++via)
    for (uint32_t a = 0; a < numNodes; ++a)
      for (uint32_t b = 0; b < numNodes; ++b)
        if (reaches[a][via] && reaches[via][b])
          reaches[a][b] = true;
  return reaches;
}

} // namespace

// A node is on a cycle if it reaches itself, and a graph without cycles has longest ways: relaxed until nothing grows.
TEST(GraphAlgorithmsTest, EqualsExhaustiveSearch) {
  const uint32_t seed = 20261118;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const uint32_t n = 1 + random() % 14;
    const std::vector<DirectedEdge> edges = randomEdges(random, n, random() % 30, round % 2 == 0);
    const std::vector<std::vector<bool>> reaches = closureOf(n, edges);
    std::vector<uint32_t> cyclic;
    for (uint32_t v = 0; v < n; ++v)
      if (reaches[v][v])
        cyclic.push_back(v);
    EXPECT_EQ(nodesOnCycles(n, edges), cyclic);
    std::optional<std::vector<uint32_t>> ways = longestWays(n, edges);
    ASSERT_EQ(ways.has_value(), cyclic.empty());
    if (!ways)
      continue;
    std::vector<uint32_t> expected(n);
    for (uint32_t pass = 0; pass < n; ++pass)
      for (auto [from, to] : edges)
        expected[to] = std::max(expected[to], expected[from] + 1);
    EXPECT_EQ(*ways, expected);
  }
}

// A chain of a million nodes, as of a model of many layers, needs no stack of its length.
TEST(GraphAlgorithmsTest, LongChainsNeedNoStack) {
  const uint32_t n = 1'000'000;
  std::vector<DirectedEdge> edges;
  for (uint32_t v = 0; v + 1 < n; ++v)
    edges.push_back({v, v + 1});
  EXPECT_EQ(longestWays(n, edges)->back(), n - 1);
  EXPECT_TRUE(nodesOnCycles(n, edges).empty());
  edges.push_back({n - 1, 0});
  EXPECT_FALSE(longestWays(n, edges));
  EXPECT_EQ(nodesOnCycles(n, edges).size(), n);
}

// Nothing is on no cycle.
TEST(GraphAlgorithmsTest, EmptyGraphs) {
  EXPECT_TRUE(nodesOnCycles(0, {}).empty());
  EXPECT_TRUE(longestWays(0, {})->empty());
}
