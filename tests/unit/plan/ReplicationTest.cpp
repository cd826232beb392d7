// SPDX-License-Identifier: Apache-2.0
// Proves that the plan of several replicas is right for every number of them, for plans of all kinds that dgc makes:
// each micro-batch once, each sum over micro-batches reduced once and before its use; and that the verifier refuses
// plans in which something else crosses replicas, or too little.
#include "runtime/plan/Replication.h"
#include "runtime/plan/TaskTraits.h"
#include "tests/unit/plan/DgcPlan.h"
#include "tests/unit/plan/PlanFaults.h"
#include "tests/unit/plan/SamplePlan.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

using namespace dg;
using namespace dg::plan;
using dg::plan::testing::FaultKind;
using dg::plan::testing::planOf;
using dg::plan::testing::replicaFaultKinds;
using dg::plan::testing::samplePlan;

namespace {

const char *const commands[] = {
    "mlp:4-8-8-4 --batch 16 --microbatches 8 --optimizer sgd:lr=0.01",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --optimizer adam:lr=0.01,clip_norm=1 --mesh data=2",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --optimizer adam:lr=0.01,grad_norm=1 --mesh tensor=2 --precision f16",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --zero 1 --optimizer adam:lr=0.01,clip_norm=1 --mesh data=2",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --zero 2 --optimizer adam:lr=0.01 --mesh data=2",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --zero 3 --optimizer adam:lr=0.01,clip_norm=1 --mesh data=2",
    "mlp:4-8-8-4 --batch 16 --microbatches 5 --schedule 1f1b --optimizer sgd:lr=0.01,momentum=0.5 --mesh pipe=3",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --schedule gpipe --mesh data=2,tensor=2,pipe=2 --accumulate 2",
    "mlp:4-8-8-4 --batch 16 --microbatches 4 --metrics",
    "gpt:layers=2,hidden=16,heads=2,seq=8,vocab=32 --batch 8 --microbatches 4 --mesh pipe=2",
    "resnet:18,classes=10,image=32 --batch 16 --microbatches 4 --mesh data=2",
};

class Replicas : public ::testing::TestWithParam<const char *> {};

/// How many reductions over replicas the program has on the stage.
std::map<ValueId, int> crossingsOf(const Plan &plan, size_t program, uint32_t stage) {
  std::map<ValueId, int> found;
  for (const Chunk &chunk : plan.chunks)
    for (TaskId task : chunk.tasks)
      if (const auto *reduce = plan.tasks[task].as<AllReduce>();
          chunk.program == program && chunk.stage == stage && reduce && reduce->axis == Axis::replica)
        ++found[reduce->value];
  return found;
}

int sumsOf(const Plan &plan, size_t program, uint32_t stage) {
  int count = 0;
  for (const Chunk &chunk : plan.chunks)
    for (TaskId task : chunk.tasks)
      count += chunk.program == program && chunk.stage == stage && chunk.phase == Phase::begin &&
               plan.tasks[task].as<Zero>();
  return count;
}

void expectRight(const Plan &one, const Plan &plan, int64_t replicas) {
  Status status = verify(plan);
  EXPECT_TRUE(status) << replicas << " replicas: " << status.message();
  EXPECT_EQ(plan.mesh.numRanks(), replicas * one.mesh.numRanks());
  for (size_t index = 0; index < plan.programs.size(); ++index) {
    const Program &program = plan.programs[index];
    ASSERT_EQ(program.dealt.size(), size_t(replicas));
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      std::map<std::pair<ChunkId, uint32_t>, int> runs;
      for (int64_t replica = 0; replica < replicas; ++replica)
        for (const Action &action : program.actions[stage])
          if (program.isRunBy(replica, plan.chunks[action.chunk], action))
            ++runs[{action.chunk, action.microbatch}];
      for (const auto &[run, count] : runs)
        EXPECT_EQ(count, isPerMicrobatch(plan.chunks[run.first].phase) ? 1 : replicas);
      EXPECT_EQ(runs.size(), program.actions[stage].size());
      std::map<ValueId, int> crossings = crossingsOf(plan, index, stage);
      EXPECT_EQ(int(crossings.size()), sumsOf(plan, index, stage));
      for (const auto &[value, count] : crossings)
        EXPECT_EQ(count, 1) << plan.values[value].name;
    }
  }
}

} // namespace

TEST(Replication, DealsMicrobatchesAsWholes) {
  EXPECT_EQ(dealEvenly(8, 3), (std::vector<uint32_t>{3, 3, 2}));
  EXPECT_EQ(dealEvenly(4, 4), (std::vector<uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(dealEvenly(5, 1), (std::vector<uint32_t>{5}));
}

TEST_P(Replicas, ArePlansForEveryNumber) {
  Plan one = planOf(GetParam());
  const auto most = int64_t(one.programs[0].microbatches);
  for (int64_t replicas = 2; replicas <= most; ++replicas) {
    Result<Plan> plan = replicate(one, replicas);
    ASSERT_TRUE(plan) << plan.status().message();
    expectRight(one, *plan, replicas);
    Result<Plan> read = fromJson(toJson(*plan));
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(toJson(*read), toJson(*plan));
  }
  Result<Plan> tooMany = replicate(one, most + 1);
  ASSERT_FALSE(tooMany);
  EXPECT_EQ(tooMany.status().kind(), ErrorKind::usage);
  EXPECT_NE(tooMany.status().message().find(fmt::format("--microbatches {}", most + 1)), std::string::npos)
      << tooMany.status().message();
  EXPECT_EQ(toJson(*replicate(one, 1)), toJson(one));
}

INSTANTIATE_TEST_SUITE_P(Plans, Replicas, ::testing::ValuesIn(commands));

TEST(Replication, ReducesOverReplicasAfterTheReplicasOwnRanks) {
  // ZeRO 1 scatters in the update: only the shard crosses.
  Plan plan = *replicate(planOf("mlp:4-8-8-4 --batch 16 --microbatches 4 --zero 1 --mesh data=2"), 2);
  uint64_t crossed = 0, scattered = 0;
  for (const Task &task : plan.tasks) {
    if (const auto *scatter = task.as<ReduceScatter>())
      scattered += plan.values[scatter->to].bytes;
    if (const auto *reduce = task.as<AllReduce>(); reduce && reduce->axis == Axis::replica)
      crossed += plan.values[reduce->value].bytes;
  }
  EXPECT_GT(scattered, 0u);
  EXPECT_LE(crossed, scattered + 3 * sizeof(float)); // and the losses
}

TEST(Replication, NamesItsBracketingByCountAndBytes) {
  using Kind = Bracketing::Kind;
  Plan one = samplePlan({.stages = 1, .data = 1, .microbatches = 40});
  for (auto [replicas, expected] : {std::pair(int64_t(16), Kind::rankOrder), {17, Kind::halving}})
    for (const Task &task : replicate(one, replicas)->tasks)
      if (const auto *reduce = task.as<AllReduce>()) {
        EXPECT_EQ(reduce->algorithm.kind, expected);
      }
}

TEST(Replication, RefusesJobsWithoutABatch) {
  Plan plan = samplePlan();
  plan.programs[0].batch = 0;
  Result<Plan> replicated = replicate(plan, 2);
  ASSERT_FALSE(replicated);
  EXPECT_NE(replicated.status().message().find("compile it with --batch N"), std::string::npos);
}

namespace {

class ReplicaFaults : public ::testing::TestWithParam<FaultKind> {};

std::string testName(const ::testing::TestParamInfo<FaultKind> &info) {
  std::string name;
  for (const char *c = info.param.name; *c; ++c)
    if (std::isalnum(static_cast<unsigned char>(*c)))
      name += *c;
  return name;
}

} // namespace

TEST_P(ReplicaFaults, AreCaughtWhereverTheyArePlanted) {
  constexpr size_t mostPlaces = 40;
  size_t numPlanted = 0;
  std::string message;
  for (const char *command : {commands[1], commands[3], commands[6]}) {
    static std::map<std::string, Plan> known;
    const Plan &plan = known.try_emplace(command, *replicate(planOf(command), 3)).first->second;
    for (size_t place = 0; place < mostPlaces; ++place) {
      Plan broken = plan;
      if (!GetParam().plant(broken, place))
        break;
      ++numPlanted;
      Status status = verify(broken);
      EXPECT_FALSE(status) << GetParam().name << " number " << place << " is not caught in the plan of: " << command;
      message = status.message();
      EXPECT_NE(message.find(GetParam().says), std::string::npos) << GetParam().name << ": " << message;
    }
  }
  EXPECT_GT(numPlanted, 0u) << GetParam().name << " could be planted nowhere";
  std::printf("%s: %zu planted, the last: %s\n", GetParam().name, numPlanted, message.c_str());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReplicaFaults, ::testing::ValuesIn(replicaFaultKinds()), testName);
