// SPDX-License-Identifier: Apache-2.0
// Proves that advice is what a simulation of the changed plan says, that each kind of limit is named, and what dgviz
// finds out about a plan on the way: the work of each op, partial sums.
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/Report.h"
#include "tools/dgviz/facts/PartialSums.h"
#include "tools/dgviz/time/WhatIf.h"

#include "partitioner/predict/Simulator.h"

#include <gtest/gtest.h>

#include <map>

using namespace dg;
using namespace dg::plan;
using namespace dg::viz;
using dg::plan::testing::samplePlan;
using dg::plan::testing::taskNamed;

namespace {

partitioner::CostModel hostCosts(const Plan &plan) {
  return partitioner::CostModel(partitioner::hostCluster(uint32_t(plan.mesh.numRanks())));
}

ProgramView viewOf(const Plan &plan, const partitioner::CostModel &costs) {
  Result<ProgramView> view = viz::viewOf(plan, plan.programs[0], costs, Prediction::elsewhere, nullptr);
  EXPECT_TRUE(view) << view.status().message();
  return std::move(*view);
}

std::string limitOn(const Plan &plan, const partitioner::Cluster &cluster) {
  partitioner::CostModel costs(cluster);
  Result<Advice> advice = adviseOn(plan, viewOf(plan, costs), costs);
  EXPECT_TRUE(advice) << advice.status().message();
  return advice->limit;
}

/// As the compiler does it where a step has one micro-batch: gradients are reduced and applied in the backward chunk.
Plan withoutUpdateChunk() {
  Plan plan = samplePlan({.stages = 1, .data = 2, .microbatches = 1});
  for (Value &value : plan.values)
    if (value.kind == ValueKind::accumulator)
      value.kind = ValueKind::gradient;
  for (Task &task : plan.tasks)
    if (task.as<AllReduce>() && task.name.rfind("grad ", 0) == 0)
      task.name = task.name.substr(5);
  Chunk &backward = plan.chunks[2], &update = plan.chunks[3];
  backward.tasks.insert(backward.tasks.end(), update.tasks.begin(), update.tasks.end());
  update.tasks.clear();
  plan.chunks.pop_back();
  plan.programs[0].actions[0].pop_back();
  return plan;
}

} // namespace

TEST(WhatIf, AccumulationIsThePlanWithTwiceTheMicrobatches) {
  // The sample plan's rows of a micro-batch do not depend on their number: the oracle is the larger plan.
  for (uint32_t stages : {1u, 3u}) {
    Plan plan = samplePlan({.stages = stages, .microbatches = 4}),
         twice = samplePlan({.stages = stages, .microbatches = 8});
    partitioner::CostModel costs = hostCosts(plan);
    ProgramView view = viewOf(plan, costs);
    WhatIf::Answer answer = WhatIf(plan, view, costs).withAccumulation(2);
    ASSERT_TRUE(answer && answer->has_value());
    EXPECT_DOUBLE_EQ(**answer, partitioner::simulate(twice, costs)->stepUs);
  }
}

TEST(WhatIf, ChangesThatDoNotApplyHaveNoAnswer) {
  Plan plan = samplePlan({.stages = 1, .data = 1, .microbatches = 1});
  partitioner::CostModel costs = hostCosts(plan);
  ProgramView view = viewOf(plan, costs);
  WhatIf whatIf(plan, view, costs);
  EXPECT_FALSE(whatIf.withMicrobatches(2)->has_value()) << "no pipeline to fill";
  for (const partitioner::ScheduleDescriptor *schedule : partitioner::allSchedules())
    EXPECT_FALSE(whatIf.withSchedule(*schedule)->has_value()) << schedule->name;
  Plan eval = plan; // forward only: nothing is updated
  eval.chunks.resize(2);
  eval.programs[0].actions[0] = {{1, 0}};
  eval.programs[0].kind = plan::ProgramKind::eval;
  ProgramView evalView = viewOf(eval, costs);
  EXPECT_FALSE(WhatIf(eval, evalView, costs).withAccumulation(2)->has_value());
  Result<Advice> advice = adviseOn(eval, evalView, costs);
  ASSERT_TRUE(advice);
  for (const Change &change : advice->changes)
    EXPECT_EQ(change.how.find("--accumulate"), std::string::npos) << change.title;
}

TEST(WhatIf, MoreMicrobatchesShortenAPipelineThatWaits) {
  Plan plan = samplePlan({.stages = 4, .microbatches = 1});
  for (Task &task : plan.tasks) { // large enough that starting an op does not count
    task.flops *= 1e6;
    task.bytes *= 10;
  }
  partitioner::CostModel costs = hostCosts(plan);
  ProgramView view = viewOf(plan, costs);
  WhatIf::Answer two = WhatIf(plan, view, costs).withMicrobatches(2);
  ASSERT_TRUE(two && two->has_value());
  // (m + p - 1) / m: 4 of one micro-batch, 5 halves of two.
  EXPECT_NEAR(**two / view.figures.stepUs, 2.5 / 4, 0.05);
  EXPECT_FALSE(WhatIf(plan, view, costs).withMicrobatches(32)->has_value()) << "16 rows in all";
}

TEST(Advice, NamesEachKindOfLimit) {
  Plan plan = samplePlan({.stages = 1, .data = 2, .microbatches = 2});
  partitioner::Cluster cluster = partitioner::hostCluster(2);
  cluster.device.launchUs = 0;
  cluster.device.flopsPerSecond = {{DType::f32, 1e9}};
  cluster.device.memoryBytesPerSecond = 1e12;
  cluster.intraNode = {1e12, 0};
  EXPECT_NE(limitOn(plan, cluster).find("Arithmetic limits"), std::string::npos);
  partitioner::Cluster slowMemory = cluster;
  slowMemory.device.memoryBytesPerSecond = 1e7;
  EXPECT_NE(limitOn(plan, slowMemory).find("Memory bandwidth limits"), std::string::npos);
  partitioner::Cluster slowStarts = cluster;
  slowStarts.device.launchUs = 100;
  EXPECT_NE(limitOn(plan, slowStarts).find("number of ops limits"), std::string::npos);
  partitioner::Cluster slowLinks = cluster;
  slowLinks.intraNode = {1e6, 100};
  EXPECT_NE(limitOn(plan, slowLinks).find("Communication limits"), std::string::npos);
  Plan pipeline = samplePlan({.stages = 4, .data = 1, .microbatches = 1});
  cluster.devicesPerNode = 4;
  EXPECT_NE(limitOn(pipeline, cluster).find("Waiting limits"), std::string::npos);
}

TEST(Work, UpdatesInABackwardChunkAreUpdates) {
  Plan apart = samplePlan({.stages = 1, .data = 2, .microbatches = 1}), joined = withoutUpdateChunk();
  std::vector<viz::Work> expected = workOf(apart), found = workOf(joined);
  for (TaskId id = 0; id < apart.tasks.size(); ++id)
    EXPECT_EQ(viz::nameOf(found[id]), viz::nameOf(expected[id])) << joined.tasks[id].name;
  EXPECT_EQ(found[taskNamed(joined, "grad fc0_1.weight/matmul")], viz::Work::weightGradient);
  EXPECT_EQ(found[taskNamed(joined, "grad a0_0/matmul")], viz::Work::inputGradient);
  EXPECT_EQ(found[taskNamed(joined, "update fc0_1.weight")], viz::Work::update);
}

TEST(PartialSums, LastUntilTheyAreReduced) {
  for (const Plan &plan : {samplePlan({.stages = 2, .data = 2}), withoutUpdateChunk()}) {
    std::map<std::pair<std::string, std::string>, PartialSum> found;
    for (const PartialSum &sum : partialSums(plan))
      found[{plan.tasks[sum.task].name, plan.values[sum.value].name}] = sum;
    std::string sum = "sum fc0_1.weight",
                reduce = plan.chunks.size() > 3 ? "grad fc0_1.weight/all_reduce" : "fc0_1.weight/all_reduce";
    ASSERT_TRUE(found.contains({"grad fc0_1.weight/matmul", sum}));
    EXPECT_EQ((found[{"grad fc0_1.weight/matmul", sum}].axes), std::vector<Axis>{Axis::data});
    ASSERT_TRUE(found.contains({reduce, sum}));
    EXPECT_TRUE((found[{reduce, sum}].isReduced));
    EXPECT_FALSE(found.contains({"update fc0_1.weight", sum})) << "the sum is whole there";
    EXPECT_FALSE(found.contains({"fc0_1/matmul", "a0_1"}));
  }
  EXPECT_TRUE(partialSums(samplePlan({.data = 1})).empty()) << "one rank has the whole sum";
}
