// SPDX-License-Identifier: Apache-2.0
// Proves that the bracketing of an all-reduce follows its size and the nodes of its ranks. Other collectives have none
// to choose.
#include "partitioner/schedule/CollectiveChoice.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::partitioner;

namespace {

/// The algorithm of one collective of `bytes` over "data" in a mesh of 1 × data × tensor.
std::string chosen(uint32_t numNodes, uint32_t devicesPerNode, int64_t data, int64_t tensor, uint64_t bytes) {
  Cluster cluster;
  cluster.numNodes = numNodes;
  cluster.devicesPerNode = devicesPerNode;
  cluster.intraNode = {1e10, 1};
  cluster.interNode = {1e9, 20};
  plan::Plan plan;
  plan.mesh.sizes = {1, data, tensor};
  plan.values.resize(1);
  plan.values[0].bytes = bytes;
  plan.tasks.resize(1);
  plan.tasks[0].work = plan::AllReduce{0, plan::Axis::data, 0, {}};
  chooseBracketings(plan, CostModel(cluster));
  return plan.tasks[0].as<plan::AllReduce>()->algorithm.name();
}

constexpr uint64_t small = 64, large = 64 << 20;

TEST(CollectiveChoice, insideANodeInTheOrderOfTheRanks) {
  EXPECT_EQ(chosen(1, 8, 8, 1, small), "rank-order");
  EXPECT_EQ(chosen(1, 8, 8, 1, large), "rank-order");
}

TEST(CollectiveChoice, twoRanksHaveOneBracketing) {
  EXPECT_EQ(chosen(2, 1, 2, 1, small), "rank-order");
  EXPECT_EQ(chosen(2, 1, 2, 1, large), "rank-order");
}

TEST(CollectiveChoice, oneRankANode) {
  EXPECT_EQ(chosen(8, 1, 8, 1, small), "halving");
  EXPECT_EQ(chosen(8, 1, 8, 1, large), "ring");
}

TEST(CollectiveChoice, severalRanksANode) {
  EXPECT_EQ(chosen(2, 4, 8, 1, large), "two-level:4");
  // Ranks 0, 2, 4, 6: every second device of a node.
  EXPECT_EQ(chosen(2, 4, 4, 2, large), "two-level:2");
  // Three on the first node, one on the second: blocks are not equal.
  EXPECT_EQ(chosen(2, 3, 4, 1, large), "ring");
}

} // namespace
