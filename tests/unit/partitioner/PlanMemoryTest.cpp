// SPDX-License-Identifier: Apache-2.0
// Proves that values which live at the same time never share memory and that every hazard is a dependency, by brute
// force over random plans; that memory is reused where it may be; and that the plan verifier agrees.
#include "partitioner/memory/PlanMemory.h"
#include "partitioner/schedule/PlanSchedule.h"
#include "tests/unit/partitioner/PlanSketch.h"
#include "tests/unit/partitioner/RandomPlan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace dg;
using namespace dg::partitioner;
using namespace dg::partitioner::testing;
using plan::Phase;
using plan::ValueKind;

static bool isPersistent(const plan::Value &value) {
  return value.kind == ValueKind::parameter || value.kind == ValueKind::state || value.kind == ValueKind::constant;
}

static std::set<plan::ValueId> touchedBy(const plan::Plan &plan, const plan::Task &task) {
  std::vector<plan::ValueId> values = valuesOf(startOf(plan, task));
  std::set<plan::ValueId> touched(values.begin(), values.end());
  return touched;
}

/// A stretch of bytes that one value of one micro-batch owns from one moment of the step to another.
struct Occupation {
  plan::ValueId value;
  uint32_t microbatch;
  uint64_t begin, end;
  uint32_t first, last;
};

/// Runs a stage's actions task by task and notes who needs which bytes from when to when.
static std::vector<Occupation> occupationsOf(const plan::Plan &plan, const plan::Program &program, uint32_t stage) {
  std::map<std::pair<plan::ValueId, uint32_t>, Occupation> found;
  uint32_t clock = 0;
  for (const plan::Action &action : program.actions[stage])
    for (plan::TaskId task : plan.chunks[action.chunk].tasks) {
      for (plan::ValueId id : touchedBy(plan, plan.tasks[task])) {
        const plan::Value &value = plan.values[id];
        bool isStepLong = value.kind == ValueKind::accumulator || isPersistent(value);
        uint32_t microbatch = isStepLong ? 0 : action.microbatch;
        uint64_t begin = value.offset + microbatch % value.slots * value.stride;
        auto [place, isNew] = found.try_emplace({id, microbatch});
        if (isNew)
          place->second = {id, microbatch, begin, begin + value.bytes, clock, clock};
        place->second.last = clock;
      }
      ++clock;
    }
  std::vector<Occupation> all;
  for (auto &[key, occupation] : found) {
    const plan::Value &value = plan.values[occupation.value];
    if (isPersistent(value) || value.kind == ValueKind::input)
      occupation.first = 0;
    if (isPersistent(value))
      occupation.last = clock;
    for (const plan::Port &port : program.outputs)
      if (std::count(port.values.begin(), port.values.end(), occupation.value))
        occupation.last = clock;
    all.push_back(occupation);
  }
  return all;
}

static void checkNothingOverlaps(const plan::Plan &plan) {
  for (const plan::Program &program : plan.programs)
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      std::vector<Occupation> all = occupationsOf(plan, program, stage);
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_LE(all[i].end, plan.memory[stage].arenaBytes);
        ASSERT_EQ(all[i].begin % 64, 0u);
        for (size_t j = 0; j < i; ++j) {
          bool meetInTime = all[i].first <= all[j].last && all[j].first <= all[i].last;
          bool meetInSpace = all[i].begin < all[j].end && all[j].begin < all[i].end;
          ASSERT_FALSE(meetInTime && meetInSpace)
              << nameOf(program.kind) << ", stage " << stage << ": " << plan.values[all[i].value].name
              << " of micro-batch " << all[i].microbatch << " and " << plan.values[all[j].value].name << " of "
              << all[j].microbatch;
        }
      }
    }
}

/// Every two tasks of a chunk that touch the same bytes, one of them writing, are ordered by dependencies.
static void checkHazards(const plan::Plan &plan) {
  auto meet = [&](plan::ValueId a, plan::ValueId b) {
    const plan::Value &x = plan.values[a], &y = plan.values[b];
    return x.offset < y.offset + y.stride * y.slots && y.offset < x.offset + x.stride * x.slots;
  };
  for (const plan::Chunk &chunk : plan.chunks) {
    std::map<plan::TaskId, std::set<plan::TaskId>> before; // all that a task waits for, directly or not
    for (plan::TaskId later : chunk.tasks) {
      for (plan::TaskId dependency : plan.tasks[later].deps) {
        ASSERT_TRUE(before.count(dependency)) << "a dependency comes first and in the same chunk";
        before[later].insert(dependency);
        before[later].insert(before[dependency].begin(), before[dependency].end());
      }
      before[later];
      for (plan::TaskId earlier : chunk.tasks) {
        if (earlier == later)
          break;
        for (plan::ValueId a : touchedBy(plan, plan.tasks[earlier]))
          for (plan::ValueId b : touchedBy(plan, plan.tasks[later])) {
            auto writes = [&](plan::TaskId task, plan::ValueId value) {
              std::vector<plan::ValueId> writes = writesOf(startOf(plan, plan.tasks[task]));
              return std::count(writes.begin(), writes.end(), value) > 0;
            };
            if (meet(a, b) && (writes(earlier, a) || writes(later, b)))
              ASSERT_TRUE(before[later].count(earlier))
                  << plan.tasks[later].name << " touches " << plan.values[b].name << " over " << plan.values[a].name
                  << " of " << plan.tasks[earlier].name;
          }
      }
    }
  }
}

/// Schedules and lays out; the test fails where that fails.
static void complete(plan::Plan &plan, const std::string &schedule) {
  Status status = schedulePlan(plan, *parseSchedule(schedule));
  ASSERT_TRUE(status) << status.message();
  planMemory(plan);
}

class RandomPlanTest : public ::testing::TestWithParam<std::tuple<const char *, uint32_t, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(All, RandomPlanTest,
                         ::testing::Combine(::testing::Values("1f1b", "gpipe"), ::testing::Values(1u, 2u, 4u),
                                            ::testing::Values(1u, 2u, 5u)));

// What lives at the same moment never overlaps, every hazard is ordered, and the verifier accepts the plan.
TEST_P(RandomPlanTest, IsSound) {
  auto [schedule, numStages, microbatches] = GetParam();
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    plan::Plan plan = RandomPlan(numStages, microbatches, random).make();
    complete(plan, schedule);
    checkNothingOverlaps(plan);
    checkHazards(plan);
    Status status = plan::verify(plan);
    EXPECT_TRUE(status) << status.message();
    for (uint32_t stage = 0; stage < numStages; ++stage)
      EXPECT_EQ(plan.predicted.peakBytes[stage], plan.memory[stage].arenaBytes);
    if (HasFailure()) {
      std::cout << "seed " << seed << "\n";
      return;
    }
  }
}

// The same plan gets the same places and dependencies, even when it had others before.
TEST_P(RandomPlanTest, IsDeterministic) {
  auto [schedule, numStages, microbatches] = GetParam();
  std::mt19937 random(77);
  plan::Plan once = RandomPlan(numStages, microbatches, random).make();
  complete(once, schedule);
  plan::Plan twice = once;
  complete(twice, schedule);
  EXPECT_EQ(plan::toJson(once), plan::toJson(twice));
}

/// A chain x -> v0 -> v1 -> … of equal values, each read by the next task only.
static plan::Plan makeChain(uint32_t microbatches, uint32_t length) {
  PlanSketch sketch(1);
  sketch.addProgram(plan::ProgramKind::infer, microbatches);
  sketch.addChunk(0, Phase::forward);
  plan::ValueId last = sketch.addValue(0, ValueKind::input, 256);
  sketch.plan.programs[0].inputs = {{"x", {last}}};
  for (uint32_t i = 0; i < length; ++i) {
    plan::ValueId next = sketch.addValue(0, ValueKind::activation, 256);
    sketch.addKernel({last}, {next});
    last = next;
  }
  return std::move(sketch.plan);
}

// A chain of any length needs two buffers at a time: what was read is free again.
TEST(PlanMemoryTest, MemoryIsReusedAfterTheLastUse) {
  plan::Plan plan = makeChain(1, 50);
  complete(plan, "1f1b");
  EXPECT_EQ(plan.memory[0].arenaBytes, 2048u);
  EXPECT_EQ(plan.memory[0].persistentBytes, 0u);
  checkHazards(plan);
}

// With several micro-batches the inputs of all of them stay, and what does not leave its chunk is still reused.
TEST(PlanMemoryTest, ValuesOfOneChunkAreReusedWithSeveralMicrobatches) {
  plan::Plan plan = makeChain(3, 50);
  complete(plan, "1f1b");
  EXPECT_EQ(plan.values[0].slots, 3u);
  EXPECT_EQ(plan.memory[0].arenaBytes, 3 * 1024u + 2 * 1024u);
  Status status = plan::verify(plan);
  EXPECT_TRUE(status) << status.message();
}

// Programs run one at a time: they lie over one another, behind the parameters that they share.
TEST(PlanMemoryTest, ProgramsShareTheArena) {
  PlanSketch sketch(1);
  plan::ValueId weight = sketch.addValue(0, ValueKind::parameter, 100);
  std::vector<plan::ValueId> inputs;
  for (plan::ProgramKind kind : {plan::ProgramKind::train, plan::ProgramKind::eval}) {
    sketch.addProgram(kind, 1);
    inputs.push_back(sketch.addValue(0, ValueKind::input, kind == plan::ProgramKind::train ? 1024 : 16));
    sketch.plan.programs.back().inputs = {{"x", {inputs.back()}}};
    sketch.addChunk(0, Phase::forward);
    sketch.addKernel({inputs.back(), weight}, {sketch.addValue(0, ValueKind::activation, 16)});
  }
  complete(sketch.plan, "gpipe");
  const plan::StageMemory &memory = sketch.plan.memory[0];
  EXPECT_EQ(memory.persistentBytes, 448u); // 400 bytes, rounded up to 64
  EXPECT_EQ(memory.arenaBytes, 448u + 4096u + 64u);
  EXPECT_EQ(sketch.plan.values[weight].offset, 0u);
  EXPECT_GE(sketch.plan.values[inputs[1]].offset, 448u);
  Status status = plan::verify(sketch.plan);
  EXPECT_TRUE(status) << status.message();
}

// Two readers of one value may run side by side; who overwrites it in place waits for both, and the next reader for
// him.
TEST(PlanMemoryTest, DependenciesAreOnlyTheNeededOnes) {
  PlanSketch sketch(1);
  sketch.addProgram(plan::ProgramKind::infer, 1);
  sketch.addChunk(0, Phase::forward);
  plan::ValueId x = sketch.addValue(0, ValueKind::input, 16);
  sketch.plan.programs[0].inputs = {{"x", {x}}};
  plan::ValueId a = sketch.addValue(0, ValueKind::activation, 16), b = sketch.addValue(0, ValueKind::activation, 16),
                c = sketch.addValue(0, ValueKind::activation, 16), d = sketch.addValue(0, ValueKind::activation, 16);
  plan::TaskId makeA = sketch.addKernel({x}, {a}), readA = sketch.addKernel({a}, {b}),
               readAgain = sketch.addKernel({a}, {c}), overwrite = sketch.addKernel({a}, {a}),
               last = sketch.addKernel({a, b, c}, {d});
  complete(sketch.plan, "gpipe");
  using Deps = std::vector<plan::TaskId>;
  EXPECT_EQ(sketch.plan.tasks[makeA].deps, Deps{});
  EXPECT_EQ(sketch.plan.tasks[readA].deps, Deps{makeA});
  EXPECT_EQ(sketch.plan.tasks[readAgain].deps, Deps{makeA});
  EXPECT_EQ(sketch.plan.tasks[overwrite].deps, (Deps{makeA, readA, readAgain}));
  EXPECT_EQ(sketch.plan.tasks[last].deps, (Deps{readA, readAgain, overwrite}));
}

// Communication holds its buffer until it is finished: work in between runs beside it, in other memory.
TEST(PlanMemoryTest, CommunicationOverlapsWithWork) {
  PlanSketch sketch(1);
  sketch.addProgram(plan::ProgramKind::infer, 1);
  sketch.addChunk(0, Phase::forward);
  plan::ValueId x = sketch.addValue(0, ValueKind::input, 16);
  sketch.plan.programs[0].inputs = {{"x", {x}}};
  plan::ValueId sum = sketch.addValue(0, ValueKind::activation, 16), a = sketch.addValue(0, ValueKind::activation, 16),
                b = sketch.addValue(0, ValueKind::activation, 16);
  sketch.addKernel({x}, {sum});
  plan::TaskId start = sketch.addAllReduce(sum);
  plan::TaskId beside = sketch.addKernel({x}, {a});
  sketch.addFinish(start);
  plan::TaskId finish = sketch.plan.chunks[0].tasks.back();
  plan::TaskId reader = sketch.addKernel({sum, a}, {b});
  complete(sketch.plan, "gpipe");
  EXPECT_TRUE(sketch.plan.tasks[beside].deps.empty());
  EXPECT_EQ(sketch.plan.tasks[finish].deps, std::vector<plan::TaskId>{start});
  const std::vector<plan::TaskId> &deps = sketch.plan.tasks[reader].deps;
  EXPECT_EQ(std::count(deps.begin(), deps.end(), beside), 1);
  EXPECT_EQ(std::count(deps.begin(), deps.end(), finish), 1);
  checkNothingOverlaps(sketch.plan);
  Status status = plan::verify(sketch.plan);
  EXPECT_TRUE(status) << status.message();
}

// Results stay until the step ends, although nothing reads them any more.
TEST(PlanMemoryTest, OutputsAreKept) {
  plan::Plan plan = makeChain(1, 5);
  plan.programs[0].outputs = {{"y", {1}}, {"z", {5}}};
  complete(plan, "1f1b");
  checkNothingOverlaps(plan);
  Status status = plan::verify(plan);
  EXPECT_TRUE(status) << status.message();
}

// Each micro-batch of inference has its own results, and they stay until the step ends.
TEST(PlanMemoryTest, OutputsOfEveryMicrobatchAreKept) {
  plan::Plan plan = makeChain(3, 5);
  plan.programs[0].outputs = {{"y", {1}}, {"z", {5}}};
  complete(plan, "1f1b");
  EXPECT_EQ(plan.values[1].slots, 3u);
  EXPECT_EQ(plan.values[5].slots, 3u);
  EXPECT_EQ(plan.values[2].slots, 1u);
  checkNothingOverlaps(plan);
  Status status = plan::verify(plan);
  EXPECT_TRUE(status) << status.message();
}

// A value of no bytes has a place and no hazards.
TEST(PlanMemoryTest, EmptyValuesNeedNothing) {
  PlanSketch sketch(1);
  sketch.addProgram(plan::ProgramKind::infer, 1);
  sketch.addChunk(0, Phase::forward);
  plan::ValueId a = sketch.addValue(0, ValueKind::activation, 0), b = sketch.addValue(0, ValueKind::activation, 0);
  sketch.addKernel({}, {a});
  sketch.addKernel({a}, {b});
  complete(sketch.plan, "gpipe");
  EXPECT_EQ(sketch.plan.memory[0].arenaBytes, 0u);
}
