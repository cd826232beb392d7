// SPDX-License-Identifier: Apache-2.0
// Proves the closed forms of kernels, transfers and collectives on round numbers, and their order relations.
#include "partitioner/model/CostModel.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::partitioner;
using plan::DType;
using plan::TaskKind;

/// 1 flop and 1 byte of memory a microsecond at half efficiency; links of 1 byte/us and 2 us (inside), 0.5 byte/us and
/// 10 us (between).
static CostModel makeModel(uint32_t numNodes, uint32_t devicesPerNode) {
  Cluster cluster{"test",         numNodes,
                  devicesPerNode, {"d", {{DType::f32, 1e6}, {DType::bf16, 8e6}}, 1 << 20, 1e6, 0.5, 3},
                  {1e6, 2},       {0.5e6, 10}};
  return CostModel(cluster);
}

// A kernel takes the longer of arithmetic and memory, plus its launch; free work takes nothing.
TEST(CostModelTest, KernelIsRoofline) {
  CostModel costs = makeModel(1, 1);
  EXPECT_DOUBLE_EQ(costs.kernelUs(100, 50, DType::f32), 203);
  EXPECT_DOUBLE_EQ(costs.kernelUs(100, 500, DType::f32), 503);
  EXPECT_DOUBLE_EQ(costs.kernelUs(100, 10, DType::bf16), 28);
  EXPECT_DOUBLE_EQ(costs.kernelUs(100, 50, DType::f64), 203); // runs at the rate of f32
  EXPECT_DOUBLE_EQ(costs.kernelUs(0, 0, DType::f32), 0);
}

// An op that was measured takes what its curve says: at a point exactly, between two straight in logarithms, outside in
// proportion, never less than a launch. Others keep the roofline.
TEST(CostModelTest, KernelFollowsItsCurve) {
  Cluster cluster = makeModel(1, 1).cluster();
  cluster.device.kernels["dg.relu"] = {{100, 400}, {10000, 10000}};
  CostModel costs(cluster);
  EXPECT_DOUBLE_EQ(costs.kernelUs(1, 100, DType::f32, "dg.relu"), 400);
  EXPECT_DOUBLE_EQ(costs.kernelUs(10000, 1, DType::f32, "dg.relu"), 10000);
  EXPECT_NEAR(costs.kernelUs(1, 1000, DType::f32, "dg.relu"), 2000, 1e-9); // half way: the geometric mean
  EXPECT_DOUBLE_EQ(costs.kernelUs(1, 20000, DType::f32, "dg.relu"), 20000);
  EXPECT_DOUBLE_EQ(costs.kernelUs(1, 50, DType::f32, "dg.relu"), 200);
  EXPECT_DOUBLE_EQ(costs.kernelUs(0, 0.1, DType::f32, "dg.relu"), 3);
  EXPECT_DOUBLE_EQ(costs.kernelUs(100, 50, DType::f32, "dg.add"), 203);
}

// A message takes the link that joins its ranks.
TEST(CostModelTest, TransferTakesItsLink) {
  CostModel costs = makeModel(2, 2);
  EXPECT_EQ(&costs.linkBetween(0, 1), &costs.cluster().intraNode);
  EXPECT_EQ(&costs.linkBetween(1, 2), &costs.cluster().interNode);
}

// One rank has nobody to talk to.
TEST(CostModelTest, OneRankIsFree) {
  CostModel costs = makeModel(1, 1);
  for (TaskKind kind : {TaskKind::allReduce, TaskKind::allGather, TaskKind::reduceScatter})
    for (Algorithm algorithm :
         {Algorithm::direct, Algorithm::ring, Algorithm::recursiveDoubling, Algorithm::tree, Algorithm::twoLevel})
      EXPECT_DOUBLE_EQ(costs.collectiveUs(kind, algorithm, {1, 1}, 1000), 0) << nameOf(algorithm);
}

// Four ranks of one node, 800 bytes: the textbook forms.
TEST(CostModelTest, CollectivesHaveTheirClosedForms) {
  CostModel costs = makeModel(1, 4);
  Group four{4, 1};
  auto us = [&](TaskKind kind, Algorithm algorithm) { return costs.collectiveUs(kind, algorithm, four, 800); };
  EXPECT_DOUBLE_EQ(us(TaskKind::allReduce, Algorithm::direct), 2 * (2 + 600));
  EXPECT_DOUBLE_EQ(us(TaskKind::allReduce, Algorithm::ring), 2 * (3 * 2 + 600));
  EXPECT_DOUBLE_EQ(us(TaskKind::allReduce, Algorithm::recursiveDoubling), 2 * (2 + 800));
  EXPECT_DOUBLE_EQ(us(TaskKind::allReduce, Algorithm::tree), 4 * (2 + 800));
  EXPECT_DOUBLE_EQ(us(TaskKind::allGather, Algorithm::ring), 3 * 2 + 600);
  EXPECT_DOUBLE_EQ(us(TaskKind::allGather, Algorithm::recursiveDoubling), 2 * 2 + 600);
  EXPECT_DOUBLE_EQ(us(TaskKind::reduceScatter, Algorithm::direct), 2 + 600);
}

// Two levels: reduce-scatter inside, all-reduce of a quarter between, all-gather inside.
TEST(CostModelTest, TwoLevelsAddUp) {
  CostModel costs = makeModel(2, 4);
  double inside = 2 * (2 + 600), between = 2 * (10 + 0.5 * 400);
  EXPECT_DOUBLE_EQ(costs.collectiveUs(TaskKind::allReduce, Algorithm::twoLevel, {8, 2}, 800), inside + between);
  EXPECT_EQ(costs.bestAlgorithm(TaskKind::allReduce, {8, 2}, 1e6), Algorithm::twoLevel);
}

// The best algorithm is no slower than any other that may be used, and a short message prefers few steps.
TEST(CostModelTest, BestIsBest) {
  CostModel costs = makeModel(4, 4);
  for (TaskKind kind : {TaskKind::allReduce, TaskKind::allGather, TaskKind::reduceScatter})
    for (Group group : {Group{2, 1}, Group{4, 1}, Group{4, 4}, Group{16, 4}})
      for (double bytes : {8.0, 1e3, 1e6}) {
        Algorithm best = costs.bestAlgorithm(kind, group, bytes);
        for (Algorithm algorithm :
             {Algorithm::ring, Algorithm::recursiveDoubling, Algorithm::tree, Algorithm::twoLevel})
          EXPECT_LE(costs.collectiveUs(kind, best, group, bytes), costs.collectiveUs(kind, algorithm, group, bytes));
      }
  EXPECT_EQ(costs.bestAlgorithm(TaskKind::allReduce, {4, 4}, 1), Algorithm::recursiveDoubling);
  EXPECT_EQ(costs.bestAlgorithm(TaskKind::allReduce, {4, 4}, 1e6), Algorithm::ring);
}

// A group knows how many nodes it stands on.
TEST(CostModelTest, GroupsCountNodes) {
  CostModel costs = makeModel(4, 2);
  EXPECT_EQ(costs.groupOf({0, 1}).numNodes, 1u);
  EXPECT_EQ(costs.groupOf({0, 2, 4, 6}).numNodes, 4u);
  EXPECT_EQ(costs.groupOf({6, 7, 1}).numNodes, 2u);
}
