// SPDX-License-Identifier: Apache-2.0
// Proves that the choice of what to compute again reaches the peak that is asked for in most steps where some choice
// does, at a cost near the least, against every choice of random steps; and that it never raises the peak.
#include "passes/split/RecomputeChoice.h"

#include <gtest/gtest.h>

#include <random>

using namespace dg::passes;

namespace {

/// A chain of layers as training has them: x₀ → f₁ → x₁ → … → b₁, where bᵢ reads what layer i made and the gradient.
Step chain(uint32_t layers, double bytes) {
  Step step;
  step.bytes.assign(2 * layers + 1, bytes);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    StepOp op;
    if (layer > 0)
      op.reads = {layer - 1};
    op.writes = {layer};
    op.cost = 1;
    op.canRepeat = layer > 0;
    step.ops.push_back(op);
  }
  for (uint32_t back = 0; back < layers; ++back) {
    StepOp op;
    op.isForward = false;
    op.reads = {layers - 1 - back};
    if (back > 0)
      op.reads.push_back(layers + back - 1);
    op.writes = {layers + back};
    step.ops.push_back(op);
  }
  return step;
}

double costOf(const Step &step, const std::vector<bool> &repeated) {
  double cost = 0;
  for (size_t op = 0; op < step.ops.size(); ++op)
    cost += repeated[op] ? step.ops[op].cost : 0;
  return cost;
}

Step randomStep(std::mt19937 &random) {
  Step step;
  auto below = [&](uint32_t limit) { return uint32_t(random() % limit); };
  const uint32_t numForward = 4 + below(6), numBackward = 3 + below(6);
  for (uint32_t op = 0; op < numForward + numBackward; ++op) {
    StepOp made;
    made.isForward = op < numForward;
    for (uint32_t read = 0; op > 0 && read < 1 + below(2); ++read)
      made.reads.push_back(below(op));
    made.writes = {op};
    made.cost = 1 + below(20);
    made.canRepeat = made.isForward && below(4) > 0;
    step.bytes.push_back(1 + below(8));
    step.ops.push_back(std::move(made));
  }
  return step;
}

} // namespace

TEST(RecomputeChoice, nothingIsRepeatedWithoutNeed) {
  Step step = chain(6, 100);
  EXPECT_EQ(costOf(step, chooseRepeated(step, 0)), 0);
}

TEST(RecomputeChoice, aChainNeedsFewValuesAtOnce) {
  Step step = chain(12, 100);
  std::vector<bool> none(step.ops.size());
  // The last gradient is made while all values of the layers are there.
  EXPECT_EQ(peakBytes(step, none), 1300);
  std::vector<bool> some = chooseRepeated(step, 400);
  EXPECT_LE(peakBytes(step, some), 900);
  EXPECT_GT(costOf(step, some), 0);
}

TEST(RecomputeChoice, cheapBytesComeFirst) {
  // The values of the last two layers are needed again before another is free; any one of the others would do.
  Step step = chain(6, 100);
  step.ops[1].cost = step.ops[3].cost = 50;
  step.ops[2].cost = 2;
  std::vector<bool> chosen = chooseRepeated(step, 100);
  EXPECT_LE(peakBytes(step, chosen), 600);
  EXPECT_EQ(costOf(step, chosen), 2);
  EXPECT_TRUE(chosen[2]);
}

TEST(RecomputeChoice, againstEveryChoice) {
  const uint32_t seed = 20261116;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  double costs = 0, leastCosts = 0;
  uint32_t reached = 0, reachable = 0;
  for (int round = 0; round < 300; ++round) {
    Step step = randomStep(random);
    std::vector<uint32_t> candidates;
    for (uint32_t op = 0; op < step.ops.size(); ++op)
      if (step.ops[op].canRepeat)
        candidates.push_back(op);
    std::vector<bool> none(step.ops.size());
    const double whole = peakBytes(step, none), goal = whole - 1 - double(random() % 6);
    double least = -1;
    for (uint32_t set = 0; set < (1u << candidates.size()); ++set) {
      std::vector<bool> repeated = none;
      for (size_t i = 0; i < candidates.size(); ++i)
        repeated[candidates[i]] = set >> i & 1;
      if (peakBytes(step, repeated) <= goal && (least < 0 || costOf(step, repeated) < least))
        least = costOf(step, repeated);
    }
    std::vector<bool> chosen = chooseRepeated(step, whole - goal);
    for (uint32_t op = 0; op < step.ops.size(); ++op)
      EXPECT_TRUE(!chosen[op] || step.ops[op].canRepeat);
    EXPECT_LE(peakBytes(step, chosen), whole);
    if (least < 0) {
      EXPECT_GT(peakBytes(step, chosen), goal);
      continue;
    }
    ++reachable;
    if (peakBytes(step, chosen) <= goal) {
      ++reached;
      costs += costOf(step, chosen);
      leastCosts += least;
    }
  }
  EXPECT_GT(reachable, 50u);
  EXPECT_GE(reached, reachable * 8 / 10);
  EXPECT_LE(costs, 1.15 * leastCosts);
  std::printf("reached %u of %u goals, at %.3f times the least cost\n", reached, reachable, costs / leastCosts);
}
