// SPDX-License-Identifier: Apache-2.0
// Proves that the simulated step has the length that can be worked out by hand: chains, pipelines, overlap,
// collectives.
#include "partitioner/predict/Simulator.h"
#include "partitioner/schedule/ScheduleDescriptor.h"
#include "tests/unit/plan/HandTasks.h"

#include <gtest/gtest.h>

#include <map>

using namespace dg;
using namespace dg::partitioner;
using namespace dg::plan;

namespace {

/// A kernel of f flops takes f us. Links: 1 byte/us; latency as given.
CostModel makeModel(uint32_t numRanks, double latencyUs = 0) {
  Cluster cluster{"test",          1, numRanks, {"d", {{DType::f32, 1e6}}, 1 << 20, 1e6, 1, 0}, {1e6, latencyUs},
                  {1e6, latencyUs}};
  return CostModel(cluster);
}

/// Builds plans task by task.
struct PlanBuilder {
  Plan plan;
  PlanBuilder(int64_t pipe, int64_t data = 1, int64_t tensor = 1) {
    plan.mesh.sizes = {pipe, data, tensor};
    plan.memory.resize(size_t(pipe));
    for (int64_t s = 0; s < pipe; ++s)
      plan.memory[size_t(s)].arenaBytes = 64 * uint64_t(s + 1);
    plan.programs.emplace_back().kind = plan::ProgramKind::train;
    plan.programs[0].actions.resize(size_t(pipe));
  }
  ValueId value(uint32_t stage, uint64_t bytes) {
    Value &value = plan.values.emplace_back();
    value.stage = stage;
    value.bytes = bytes;
    return ValueId(plan.values.size() - 1);
  }
  ChunkId chunk(uint32_t stage, Phase phase) {
    Chunk &chunk = plan.chunks.emplace_back();
    chunk.stage = stage;
    chunk.phase = phase;
    return ChunkId(plan.chunks.size() - 1);
  }
  Task &add(ChunkId chunk, TaskKind kind, std::vector<TaskId> deps = {}, std::vector<ValueId> buffers = {}) {
    plan.chunks[chunk].tasks.push_back(TaskId(plan.tasks.size()));
    Task &task = plan.tasks.emplace_back();
    task.stage = plan.chunks[chunk].stage;
    task.work = plan::testing::workOf(kind, buffers);
    task.deps = std::move(deps);
    return task;
  }
  TaskId last() const { return TaskId(plan.tasks.size() - 1); }
  TaskId kernel(ChunkId chunk, double flops, std::vector<TaskId> deps = {}) {
    add(chunk, TaskKind::kernel, std::move(deps)).flops = flops;
    return last();
  }
  TaskId allReduce(ChunkId chunk, ValueId value, std::vector<TaskId> deps = {}) {
    add(chunk, TaskKind::allReduce, std::move(deps), {value}); // over data
    return last();
  }
  TaskId receive(ChunkId chunk, ValueId value, uint32_t peer, uint32_t channel) {
    Task &task = add(chunk, TaskKind::receive, {}, {value});
    task.work = Receive{value, peer, channel};
    return last();
  }
  void send(ChunkId chunk, ValueId value, uint32_t peer, uint32_t channel, TaskId dep) {
    add(chunk, TaskKind::send, {dep}, {value}).work = Send{value, peer, channel};
  }
  TaskId finish(ChunkId chunk, TaskId what) {
    add(chunk, TaskKind::finish, {what}).work = Finish{what};
    return last();
  }
  void loop(ChunkId chunk, ChunkId body, uint32_t trips) { add(chunk, TaskKind::loop).work = Loop{body, trips}; }
  void run(uint32_t stage, ChunkId chunk, uint32_t microbatch = 0) {
    plan.programs[0].actions[stage].push_back({chunk, microbatch});
  }
};

/// p stages whose forward takes tf and backward tb, joined by messages of `bytes`.
Plan makePipeline(const std::string &name, uint32_t p, uint32_t m, double tf, double tb, uint64_t bytes) {
  PlanBuilder b(p);
  std::vector<ChunkId> forward(p), backward(p);
  for (uint32_t s = 0; s < p; ++s) {
    ValueId in = b.value(s, bytes), out = b.value(s, bytes);
    for (bool isForward : {true, false}) {
      ChunkId chunk = b.chunk(s, isForward ? Phase::forward : Phase::backward);
      (isForward ? forward : backward)[s] = chunk;
      bool hasInput = isForward ? s > 0 : s + 1 < p, hasOutput = isForward ? s + 1 < p : s > 0;
      uint32_t up = isForward ? s - 1 : s + 1, down = isForward ? s + 1 : s - 1;
      uint32_t base = isForward ? 0 : 1000; // channel: of the producing stage
      std::vector<TaskId> deps;
      if (hasInput)
        deps = {b.finish(chunk, b.receive(chunk, in, up, base + up))};
      TaskId work = b.kernel(chunk, isForward ? tf : tb, deps);
      if (hasOutput)
        b.send(chunk, out, down, base + s, work);
    }
  }
  Schedule schedule = *makeSchedule(*findSchedule(name), {p, m});
  for (uint32_t s = 0; s < p; ++s)
    for (Pass pass : schedule.stages[s].passes)
      b.run(s, (pass.phase == Phase::forward ? forward : backward)[s], pass.microbatch);
  return b.plan;
}

} // namespace

// Kernels of one stage add up; nothing is idle; the peaks are the arenas.
TEST(Simulator, FactorsOf16BitsAreMultipliedAtTheirRate) {
  CostModel costs(
      Cluster{"test", 1, 1, {"d", {{DType::f32, 1e6}, {DType::bf16, 4e6}}, 1 << 20, 1e12, 1, 0}, {1e6, 0}, {1e6, 0}});
  for (auto [type, us] : {std::pair(DType::f32, 100.0), std::pair(DType::bf16, 25.0)}) {
    PlanBuilder builder(1);
    ChunkId chunk = builder.chunk(0, Phase::update);
    ValueId factor = builder.value(0, 8), sum = builder.value(0, 8);
    builder.plan.values[factor].dtype = type;
    Task &product = builder.plan.tasks[builder.kernel(chunk, 100)];
    product.as<plan::Kernel>()->buffers = {{factor, plan::Access::read}, {sum, plan::Access::write}};
    builder.plan.programs[0].actions[0] = {{chunk, 0}};
    Result<Predicted> predicted = simulate(builder.plan, costs);
    ASSERT_TRUE(predicted) << predicted.status().message();
    EXPECT_DOUBLE_EQ(predicted->stepUs, us);
  }
}

TEST(SimulatorTest, ChainAddsUp) {
  PlanBuilder b(1);
  ChunkId chunk = b.chunk(0, Phase::forward);
  TaskId first = b.kernel(chunk, 5);
  b.kernel(chunk, 7, {first});
  b.kernel(chunk, 2);
  b.run(0, chunk, 0);
  b.run(0, chunk, 1);
  Result<Predicted> predicted = simulate(b.plan, makeModel(1));
  ASSERT_TRUE(predicted) << predicted.status().message();
  EXPECT_DOUBLE_EQ(predicted->stepUs, 28);
  EXPECT_DOUBLE_EQ(predicted->computeUs, 28);
  EXPECT_DOUBLE_EQ(predicted->commUs, 0);
  EXPECT_DOUBLE_EQ(predicted->bubble, 0);
  EXPECT_EQ(predicted->peakBytes, std::vector<uint64_t>{64});
}

// The recorded times are those of the step: each lane does one task at a time, and kernels and transfers add up.
TEST(SimulatorTest, RecordsEveryTask) {
  Plan plan = makePipeline("1f1b", 3, 4, 3, 6, 5);
  std::vector<SimulatedTask> tasks;
  Result<Predicted> predicted = simulateProgram(plan, plan.programs[0], makeModel(3, 4), &tasks);
  ASSERT_TRUE(predicted) << predicted.status().message();
  std::map<std::pair<uint32_t, bool>, double> busyUntil, busyUs; // by stage and whether it communicates
  double last = 0, start = 0;
  for (const SimulatedTask &task : tasks) {
    EXPECT_GE(task.startUs, start) << "in the order of their starts";
    start = task.startUs;
    std::pair lane(plan.tasks[task.task].stage, plan.tasks[task.task].kind() == TaskKind::send);
    EXPECT_GE(task.startUs, busyUntil[lane]);
    busyUntil[lane] = task.endUs;
    busyUs[lane] += task.endUs - task.startUs;
    last = std::max(last, task.endUs);
  }
  EXPECT_DOUBLE_EQ(last, predicted->stepUs);
  EXPECT_EQ(tasks.size(), 4u * (6 + 4)) << "two kernels a stage, two sends over each of two borders";
  for (uint32_t stage = 0; stage < 3; ++stage)
    EXPECT_DOUBLE_EQ((busyUs[{stage, false}]), 4 * (3 + 6));
  EXPECT_DOUBLE_EQ((busyUs[{1, true}]), 4 * 2 * 5);
}

// Equal stages and free messages: step (m+p-1)(tf+tb), bubble (p-1)/(m+p-1), for both schedules.
TEST(SimulatorTest, PipelineHasItsBubble) {
  for (const char *name : {"gpipe", "1f1b"})
    for (uint32_t p = 1; p <= 5; ++p)
      for (uint32_t m = 1; m <= 9; ++m) {
        Result<Predicted> predicted = simulate(makePipeline(name, p, m, 3, 6, 0), makeModel(p));
        ASSERT_TRUE(predicted) << predicted.status().message();
        EXPECT_NEAR(predicted->stepUs, (m + p - 1) * 9.0, 1e-9) << name << " p=" << p << " m=" << m;
        EXPECT_NEAR(predicted->bubble, (p - 1.0) / (m + p - 1.0), 1e-9);
        EXPECT_NEAR(predicted->computeUs, m * 9.0, 1e-9);
      }
}

// Ranks that share a core take turns: a pipeline whose stages outnumber the cores takes as long as all its work on
// them, a core for each rank changes nothing, a rank stays on its core although another is free, and who leaves a core
// to another holds it for one more turn.
TEST(SimulatorTest, RanksShareCores) {
  auto withCores = [](uint32_t numRanks, uint32_t cores) {
    Cluster cluster = makeModel(numRanks).cluster();
    cluster.coresPerNode = cores;
    return CostModel(cluster);
  };
  Plan pipeline = makePipeline("1f1b", 4, 8, 3, 6, 0);
  EXPECT_NEAR(simulate(pipeline, withCores(4, 1))->stepUs, 4 * 8 * 9.0, 1e-9);
  EXPECT_NEAR(simulate(pipeline, withCores(4, 4))->stepUs, simulate(pipeline, makeModel(4))->stepUs, 1e-9);
  double twoCores = simulate(pipeline, withCores(4, 2))->stepUs;
  EXPECT_GE(twoCores, 4 * 8 * 9.0 / 2);
  EXPECT_GT(twoCores, simulate(pipeline, makeModel(4))->stepUs);
  PlanBuilder b(2); // 10 us on one stage, 4 on the other
  for (uint32_t s = 0; s < 2; ++s) {
    ChunkId chunk = b.chunk(s, Phase::forward);
    b.kernel(chunk, s == 0 ? 10 : 4);
    b.run(s, chunk);
  }
  EXPECT_NEAR(simulate(b.plan, withCores(2, 1))->stepUs, 14, 1e-9);
  PlanBuilder replicas(1, 4); // four replicas on two cores
  ChunkId chunk = replicas.chunk(0, Phase::forward);
  replicas.kernel(chunk, 10);
  replicas.run(0, chunk);
  EXPECT_NEAR(simulate(replicas.plan, withCores(4, 2))->stepUs, 20, 1e-9);
  PlanBuilder uneven(4); // stages 0 and 2 have the first of two cores, and only they have work
  for (uint32_t s = 0; s < 4; ++s) {
    ChunkId own = uneven.chunk(s, Phase::forward);
    uneven.kernel(own, s % 2 == 0 ? 10 : 1);
    uneven.run(s, own);
  }
  EXPECT_NEAR(simulate(uneven.plan, withCores(4, 2))->stepUs, 20, 1e-9);
  Cluster turns =
      withCores(4, 1).cluster(); // one micro-batch: three receives forwards and three backwards are waited for
  turns.turnUs = 1.5;
  Plan single = makePipeline("1f1b", 4, 1, 3, 6, 0);
  EXPECT_NEAR(simulate(single, CostModel(turns))->stepUs, simulate(single, withCores(4, 1))->stepUs + 6 * 1.5, 1e-9);
  turns.coresPerNode = 4; // with a core for each rank nobody gives one away
  EXPECT_NEAR(simulate(single, CostModel(turns))->stepUs, simulate(single, makeModel(4))->stepUs, 1e-9);
}

// A stage has a shared core until it waits, or until its slice is over and another wants it.
TEST(SimulatorTest, SharedCoresHaveSlices) {
  PlanBuilder b(2);
  for (uint32_t s = 0; s < 2; ++s) {
    ChunkId chunk = b.chunk(s, Phase::forward);
    b.kernel(chunk, s == 0 ? 10 : 4);
    b.run(s, chunk);
  }
  Cluster cluster = makeModel(2).cluster();
  cluster.coresPerNode = 1;
  auto endOfSecond = [&](double sliceUs) {
    cluster.sliceUs = sliceUs;
    std::vector<SimulatedTask> tasks;
    Result<Predicted> predicted = simulateProgram(b.plan, b.plan.programs[0], CostModel(cluster), &tasks);
    EXPECT_TRUE(predicted) << predicted.status().message();
    EXPECT_NEAR(predicted->stepUs, 14, 1e-9);
    EXPECT_EQ(tasks.size(), 2u);
    EXPECT_EQ(tasks[1].task, 1u) << "the later start";
    return tasks[1].endUs;
  };
  EXPECT_NEAR(endOfSecond(0), 14, 1e-9);
  EXPECT_NEAR(endOfSecond(3), 10, 1e-9); // 3 of the first, 3, 3 of the first, 1
  EXPECT_NEAR(endOfSecond(20), 14, 1e-9);
  EXPECT_NEAR(endOfSecond(1e-12), 8, 0.05); // side by side, and predicted in less than a trillion slices
}

/// Replicas that reduce 40 bytes after 10 us, compute for 30 that need no sum, and for 5 that do.
static Plan besideAnAllReduce(int64_t data) {
  PlanBuilder b(1, data);
  ValueId gradient = b.value(0, 40);
  ChunkId chunk = b.chunk(0, Phase::backward);
  TaskId first = b.kernel(chunk, 10);
  TaskId reduce = b.allReduce(chunk, gradient, {first});
  TaskId second = b.kernel(chunk, 30, {first});
  b.kernel(chunk, 5, {b.finish(chunk, reduce), second});
  b.run(0, chunk);
  return b.plan;
}

// Cores that are devices move the bytes inside their host themselves: nothing hides such a collective, and replicas on
// one core pay for each other's part and for the turns in which they do it. Between hosts it hides.
TEST(SimulatorTest, CoresCommunicate) {
  auto reduceUs = [](const Cluster &cluster, uint32_t ranks, uint32_t nodes) {
    CostModel costs(cluster);
    return costs.collectiveUs(TaskKind::allReduce, costs.bestAlgorithm(TaskKind::allReduce, {ranks, nodes}, 40),
                              {ranks, nodes}, 40);
  };
  Cluster cluster = makeModel(2, 1).cluster();
  cluster.coresPerNode = 2;
  EXPECT_DOUBLE_EQ(simulate(besideAnAllReduce(2), CostModel(cluster))->stepUs, 45 + reduceUs(cluster, 2, 1));
  Cluster hosts = cluster;
  hosts.numNodes = 2;
  hosts.devicesPerNode = hosts.coresPerNode = 1;
  EXPECT_DOUBLE_EQ(simulate(besideAnAllReduce(2), CostModel(hosts))->stepUs, 15 + reduceUs(hosts, 2, 2));
  Cluster shared = makeModel(4, 1).cluster(); // two replicas on each of two cores
  shared.coresPerNode = 2;
  shared.turnUs = 1.5;
  const double workUs = 2 * (45 + reduceUs(shared, 4, 1));
  EXPECT_DOUBLE_EQ(simulate(besideAnAllReduce(4), CostModel(shared))->stepUs,
                   workUs); // there was other work: nobody waited
  PlanBuilder waiting(1, 4);
  ChunkId chunk = waiting.chunk(0, Phase::backward);
  TaskId reduce = waiting.allReduce(chunk, waiting.value(0, 40));
  waiting.kernel(chunk, 5, {waiting.finish(chunk, reduce)});
  waiting.run(0, chunk);
  EXPECT_DOUBLE_EQ(simulate(waiting.plan, CostModel(shared))->stepUs, 2 * (5 + reduceUs(shared, 4, 1)) + 2 * 1.5);
}

// One micro-batch through two stages: every message adds its latency and its bytes.
TEST(SimulatorTest, MessagesTakeTime) {
  Predicted predicted = *simulate(makePipeline("1f1b", 2, 1, 10, 20, 5), makeModel(2, 4));
  EXPECT_DOUBLE_EQ(predicted.stepUs, 10 + 9 + 10 + 20 + 9 + 20);
  EXPECT_DOUBLE_EQ(predicted.commUs, 5);
}

// A collective hides behind kernels that do not need it, and only behind those.
TEST(SimulatorTest, CollectivesOverlap) {
  CostModel costs = makeModel(2, 1);
  double reduceUs =
      costs.collectiveUs(TaskKind::allReduce, costs.bestAlgorithm(TaskKind::allReduce, {2, 1}, 40), {2, 1}, 40);
  Predicted predicted = *simulate(besideAnAllReduce(2), costs);
  EXPECT_GT(reduceUs, 30);
  EXPECT_DOUBLE_EQ(predicted.stepUs, 10 + reduceUs + 5);
  EXPECT_DOUBLE_EQ(predicted.computeUs, 45);
  EXPECT_DOUBLE_EQ(predicted.commUs, reduceUs);
  EXPECT_DOUBLE_EQ(predicted.bubble, 0);
}

// Two collectives of one stage share its link one after the other.
TEST(SimulatorTest, CollectivesQueue) {
  PlanBuilder b(1, 2);
  ValueId gradient = b.value(0, 40);
  ChunkId chunk = b.chunk(0, Phase::backward);
  for (int i = 0; i < 2; ++i) {
    TaskId reduce = b.allReduce(chunk, gradient);
    b.finish(chunk, reduce);
  }
  b.run(0, chunk);
  Predicted predicted = *simulate(b.plan, makeModel(2));
  EXPECT_DOUBLE_EQ(predicted.stepUs, 80);
}

// A loop is its body times its trips.
TEST(SimulatorTest, LoopsMultiply) {
  PlanBuilder b(1);
  ChunkId chunk = b.chunk(0, Phase::forward), body = b.chunk(0, Phase::forward);
  b.kernel(body, 3);
  b.kernel(body, 4);
  b.loop(chunk, body, 6);
  b.run(0, chunk);
  EXPECT_DOUBLE_EQ(simulate(b.plan, makeModel(1))->stepUs, 42);
  b.loop(body, body, 1);
  Result<Predicted> endless = simulate(b.plan, makeModel(1));
  ASSERT_FALSE(endless);
  EXPECT_NE(endless.status().message().find("contains itself"), std::string::npos);
}

// A receive that nobody serves ends the simulation with its stage and name.
TEST(SimulatorTest, NamesWhatNeverComes) {
  PlanBuilder b(2);
  ChunkId chunk = b.chunk(1, Phase::forward);
  ValueId in = b.value(1, 4);
  TaskId receive = b.receive(chunk, in, 0, 7);
  b.plan.tasks[receive].name = "x/receive";
  b.finish(chunk, receive);
  b.run(1, chunk);
  Result<Predicted> predicted = simulate(b.plan, makeModel(2));
  ASSERT_FALSE(predicted);
  EXPECT_EQ(predicted.status().kind(), ErrorKind::badInput);
  EXPECT_NE(predicted.status().message().find("stage 1"), std::string::npos) << predicted.status().message();
  EXPECT_NE(predicted.status().message().find("'x/receive'"), std::string::npos);
}

// A mesh larger than the cluster and a plan without programs are refused; "train" is preferred to the first program.
TEST(SimulatorTest, ChoosesAndRefuses) {
  Plan plan = makePipeline("gpipe", 3, 2, 1, 1, 0);
  Result<Predicted> tooLarge = simulate(plan, makeModel(2));
  ASSERT_FALSE(tooLarge);
  EXPECT_EQ(tooLarge.status().kind(), ErrorKind::usage);
  Program eval;
  eval.kind = plan::ProgramKind::eval;
  eval.actions.resize(3);
  plan.programs.insert(plan.programs.begin(), eval);
  EXPECT_GT(simulate(plan, makeModel(3))->stepUs, 0);
  plan.programs.pop_back();
  EXPECT_DOUBLE_EQ(simulate(plan, makeModel(3))->stepUs, 0);
  plan.programs.clear();
  EXPECT_FALSE(simulate(plan, makeModel(3)));
}

// Replicas run side by side, each its own micro-batches; the one with the most of them is waited for in the update.
TEST(SimulatorTest, ReplicasShareMicrobatches) {
  PlanBuilder b(2);
  constexpr uint64_t bytes = 60;
  for (uint32_t s = 0; s < 2; ++s) {
    ChunkId forward = b.chunk(s, Phase::forward), update = b.chunk(s, Phase::update);
    b.kernel(forward, 10);
    ValueId sum = b.value(s, bytes);
    TaskId reduce = b.allReduce(update, sum);
    b.plan.tasks[reduce].as<AllReduce>()->axis = Axis::replica;
    b.finish(update, reduce);
    for (uint32_t microbatch = 0; microbatch < 8; ++microbatch)
      b.run(s, forward, microbatch);
    b.run(s, update);
  }
  b.plan.programs[0].microbatches = 8;
  for (const std::vector<uint32_t> &dealt : {std::vector<uint32_t>{3, 3, 2}, {1, 1, 6}, {4, 4}}) {
    b.plan.mesh.replicas = int64_t(dealt.size());
    b.plan.programs[0].dealt = dealt;
    CostModel costs = makeModel(uint32_t(b.plan.mesh.numRanks()));
    Group group{uint32_t(dealt.size()), 1};
    const double reduceUs =
        costs.collectiveUs(TaskKind::allReduce, costs.bestAlgorithm(TaskKind::allReduce, group, bytes), group, bytes);
    Result<Predicted> predicted = simulate(b.plan, costs);
    ASSERT_TRUE(predicted) << predicted.status().message();
    EXPECT_GT(reduceUs, 0);
    EXPECT_NEAR(predicted->stepUs, 10.0 * *std::max_element(dealt.begin(), dealt.end()) + reduceUs, 1e-6);
  }
}
