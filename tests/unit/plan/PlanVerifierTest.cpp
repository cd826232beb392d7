// SPDX-License-Identifier: Apache-2.0
// Proves that the verifier accepts right plans and refuses each kind of wrong one, with a message that names the
// culprit.
#include "runtime/abi/KernelAbi.h"
#include "runtime/plan/Plan.h"
#include "tests/unit/plan/HandTasks.h"
#include "tests/unit/plan/SamplePlan.h"

#include <gtest/gtest.h>

#include <ctime>

using namespace dg;
using namespace dg::plan;
using dg::plan::testing::kernelOf;
using dg::plan::testing::samplePlan;
using dg::plan::testing::setAxis;
using dg::plan::testing::setChannel;
using dg::plan::testing::taskNamed;
using dg::plan::testing::valueNamed;

namespace {

/// Expects that the plan is refused and that the message holds every part.
void expectRefused(const Plan &plan, std::initializer_list<std::string> parts) {
  Status status = verify(plan);
  ASSERT_FALSE(status) << "the plan was accepted";
  EXPECT_EQ(status.kind(), ErrorKind::badInput);
  for (const std::string &part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message() << "\nlacks: " << part;
}

Chunk &chunkOf(Plan &plan, uint32_t stage, Phase phase) {
  for (Chunk &chunk : plan.chunks)
    if (chunk.stage == stage && chunk.phase == phase)
      return chunk;
  return plan.chunks[0];
}

/// One stage, one micro-batch, no communication: three kernels in a chain over temporaries of 64 bytes.
///   first: writes a · second: reads a, writes b · third: reads b, writes out
Plan chainPlan() {
  Plan plan;
  plan.memory = {{4096, 0}};
  const char *names[] = {"a", "b", "c", "out"};
  for (uint32_t i = 0; i < 4; ++i) {
    Value value;
    value.name = names[i];
    value.shape = value.globalShape = {16};
    value.sharding = {std::nullopt};
    value.bytes = 64;
    value.offset = 64 * i;
    value.kind = ValueKind::activation;
    plan.values.push_back(value);
  }
  auto add = [&](const char *name, std::vector<ValueId> reads, std::vector<ValueId> writes, std::vector<TaskId> deps) {
    Task task;
    task.name = name;
    task.work = kernelOf("k", reads, writes);
    task.deps = deps;
    plan.tasks.push_back(task);
  };
  add("first", {}, {0}, {});
  add("second", {0}, {1}, {0});
  add("third", {1}, {2}, {1});
  add("fourth", {2}, {3}, {2});
  plan.chunks = {{0, 0, Phase::forward, {0, 1, 2, 3}}};
  Program program;
  program.kind = plan::ProgramKind::infer;
  program.outputs = {{"out", {3}}};
  program.actions = {{{0, 0}}};
  plan.programs = {program};
  return plan;
}

} // namespace

static_assert(DG_BUFFER_ALIGNMENT == 64, "MemoryVerifier.cpp has the same number");

TEST(PlanVerifier, AcceptsGPipeAnd1F1B) {
  for (uint32_t stages : {1u, 2u, 3u, 4u})
    for (uint32_t microbatches : {1u, 2u, 5u, 8u})
      for (bool oneForwardOneBackward : {false, true}) {
        Plan plan = samplePlan(
            {.stages = stages, .microbatches = microbatches, .oneForwardOneBackward = oneForwardOneBackward});
        EXPECT_TRUE(verify(plan)) << stages << " stages, " << microbatches << ": " << verify(plan).message();
      }
}

TEST(PlanVerifier, AnOpInTwoChunksOrInNone) {
  Plan plan = samplePlan();
  TaskId task = chunkOf(plan, 0, Phase::backward).tasks.back();
  chunkOf(plan, 0, Phase::update).tasks.push_back(task);
  expectRefused(plan, {"is in chunk 2 and in chunk 3"});
  plan = samplePlan();
  chunkOf(plan, 0, Phase::update).tasks.pop_back();
  expectRefused(plan, {"update fc0_2.weight", "is in no chunk"});
}

TEST(PlanVerifier, AllReducesHaveAnAlgorithm) {
  for (const char *algorithm : {"rank-order", "ring", "halving", "two-level:2", "two-level:65536"}) {
    Plan plan = samplePlan();
    Result<Bracketing> bracketing = Bracketing::parse(algorithm);
    ASSERT_TRUE(bracketing);
    EXPECT_EQ(bracketing->name(), algorithm);
    plan.tasks[taskNamed(plan, "loss/all_reduce")].as<AllReduce>()->algorithm = *bracketing;
    EXPECT_TRUE(verify(plan)) << verify(plan).message();
  }
  for (const char *algorithm :
       {"", "tree", "two-level", "two-level:", "two-level:0", "two-level:2x", "two-level:65537"})
    EXPECT_FALSE(Bracketing::parse(algorithm)) << algorithm;
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "loss/all_reduce")].as<AllReduce>()->algorithm = {Bracketing::Kind::twoLevel, 0};
  expectRefused(plan, {"loss/all_reduce", "algorithm 'two-level:0', expected rank-order, ring"});
}

TEST(PlanVerifier, DevicesReachWhatTheyTouch) {
  Plan plan = samplePlan();
  for (StageMemory &stage : plan.memory)
    stage.device = DeviceKind::cuda;
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  plan.values[valueNamed(plan, "fc0_1.weight")].space = MemorySpace::pinned;
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  plan.values[valueNamed(plan, "fc0_1.weight")].space = MemorySpace::host;
  expectRefused(plan, {"'fc0_1/matmul') is a kernel on stage 0 (cuda)", "'fc0_1.weight') in host memory",
                       "expected device or pinned"});
  plan.memory[0].device = DeviceKind::cpu; // where all memory is the host's
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
}

TEST(PlanVerifier, ServersSeeNoMicrobatches) {
  Plan plan = samplePlan();
  plan.programs[0].role = Role::server;
  expectRefused(plan, {"chunk 1: a forward chunk in program 'train' of servers"});
}

TEST(PlanVerifier, DependenciesPointBackwardsInsideTheChunk) {
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "fc0_0/matmul")].deps = {taskNamed(plan, "fc0_1/matmul")};
  expectRefused(plan, {"fc0_0/matmul", "fc0_1/matmul", "not earlier in the same chunk"});
  plan = samplePlan();
  plan.tasks[taskNamed(plan, "fc0_0/matmul")].deps = {taskNamed(plan, "zero sum fc0_0.weight")};
  expectRefused(plan, {"not earlier in the same chunk"});
}

TEST(PlanVerifier, EveryCommunicationIsFinishedOnce) {
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "receive h1/finish")].work = Kernel{"k", {}};
  expectRefused(plan, {"receive h1", "no finish op"});
}

TEST(PlanVerifier, EveryMicrobatchExactlyOnce) {
  Plan plan = samplePlan();
  plan.programs[0].actions[0][2].microbatch = 0;
  expectRefused(plan, {"stage 0, action 2", "second time"});
  plan = samplePlan();
  std::erase_if(plan.programs[0].actions[1], [](const Action &action) { return action.microbatch == 3; });
  expectRefused(plan, {"runs 3 times, expected 4"});
  plan = samplePlan();
  plan.programs[0].actions[1].pop_back();
  expectRefused(plan, {"chunk 7 (update of stage 1) is never run"});
  plan = samplePlan();
  std::swap(plan.programs[0].actions[0][0], plan.programs[0].actions[0][1]);
  expectRefused(plan, {"begin comes first"});
}

TEST(PlanVerifier, SendsAndReceivesMatch) {
  Plan plan = samplePlan();
  setChannel(plan.tasks[taskNamed(plan, "send a0")], 77);
  expectRefused(plan, {"has no matching"});
  plan = samplePlan();
  setChannel(plan.tasks[taskNamed(plan, "send g1")], channelOf(plan.tasks[taskNamed(plan, "send a0")]));
  expectRefused(plan, {"are both sends"});
  plan = samplePlan();
  plan.values[valueNamed(plan, "h1")].dtype = DType::bf16;
  expectRefused(plan, {"do not match", "bf16"});
  plan = samplePlan({.stages = 3});
  plan.tasks[taskNamed(plan, "send a0")].as<Send>()->peerStage = 2;
  expectRefused(plan, {"do not match", "from stage 0 to 2"});
}

TEST(PlanVerifier, AScheduleThatCannotGoOnIsADeadlock) {
  // Stage 1 wants micro-batch 1 backward first; stage 0 waits for 0 before it makes 2 and later.
  Plan plan = samplePlan();
  std::vector<Action> &actions = plan.programs[0].actions[1];
  std::vector<Action> forwards, backwards;
  for (const Action &action : actions) {
    if (plan.chunks[action.chunk].phase == Phase::forward)
      forwards.push_back(action);
    if (plan.chunks[action.chunk].phase == Phase::backward)
      backwards.push_back(action);
  }
  std::vector<Action> reordered = {actions.front()};
  reordered.insert(reordered.end(), forwards.begin(), forwards.end());
  reordered.insert(reordered.end(), backwards.begin(), backwards.end());
  reordered.push_back(actions.back());
  actions = reordered;
  for (Value &value : plan.values)
    if (value.stage == 1 && value.kind == ValueKind::activation) { // room enough, so that only the order is wrong
      value.slots = 4;
      value.offset = plan.memory[1].arenaBytes;
      plan.memory[1].arenaBytes += 4 * value.stride;
    }
  plan.predicted.peakBytes[1] = plan.memory[1].arenaBytes;
  expectRefused(plan, {"deadlocks", "stage 0, action 3", "waits for channel 3 from stage 1", "stage 1, action 3",
                       "waits for channel 2 from stage 0"});
}

TEST(PlanVerifier, ASentSlotIsKeptUntilItIsReceived) {
  // Stage 1 takes micro-batch 1 first; stage 0 has one slot to send from, so it cannot make 1 before 0 was received.
  Plan plan = samplePlan({.oneForwardOneBackward = false});
  std::swap(plan.programs[0].actions[1][1].microbatch, plan.programs[0].actions[1][2].microbatch);
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  plan.values[valueNamed(plan, "a0_2")].slots = 1;
  expectRefused(plan, {"deadlocks", "stage 0, action 2", "'fc0_2/matmul'", "what it sent on channel 2 was received",
                       "stage 1, action 1", "waits for channel 2 from stage 0"});
}

TEST(PlanVerifier, SentBytesMayBeReusedWhereThatCannotDeadlock) {
  // With one micro-batch the gradient's memory on stage 0 may be that of the activation that was sent, in part.
  Plan plan = samplePlan({.microbatches = 1});
  plan.values[valueNamed(plan, "gx0_2")].offset = plan.values[valueNamed(plan, "a0_2")].offset;
  plan.values[valueNamed(plan, "gx0_2")].bytes += 64;
  plan.memory[0].arenaBytes += 4096;
  plan.predicted.peakBytes[0] += 4096;
  // What lies behind the activation moves out of the way.
  for (Value &value : plan.values)
    if (value.stage == 0 && value.offset == plan.values[valueNamed(plan, "a0_2")].offset + 512)
      value.offset = plan.memory[0].arenaBytes - 2048;
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
}

TEST(PlanVerifier, AMissingSlotIsAnOverwrittenMicrobatch) {
  Plan plan = samplePlan({.oneForwardOneBackward = false});
  plan.values[valueNamed(plan, "a0_0")].slots = 3;
  expectRefused(plan, {"'a0_0'", "its slot holds micro-batch 3", "with 3 slots"});
}

TEST(PlanVerifier, AnInputNeedsASlotForEveryMicrobatch) {
  Plan plan = samplePlan();
  plan.values[valueNamed(plan, "x")].slots = 2;
  expectRefused(plan, {"'x'", "an input with 2 slots for 4 micro-batches"});
}

TEST(PlanVerifier, PlacesLieInTheArenaAligned) {
  Plan plan = samplePlan();
  plan.values[valueNamed(plan, "a0_0")].offset += 32;
  expectRefused(plan, {"'a0_0'", "not a multiple of 64"});
  plan = samplePlan();
  plan.values[valueNamed(plan, "a0_0")].offset = UINT64_MAX - 63;
  expectRefused(plan, {"'a0_0'", "ends behind the arena"});
  plan = samplePlan();
  plan.values[valueNamed(plan, "a0_0")].bytes = 64;
  expectRefused(plan, {"too small for 128 elements of f32"});
  plan = samplePlan();
  plan.values[valueNamed(plan, "x")].stride = 64;
  expectRefused(plan, {"the stride must be"});
  plan = samplePlan();
  plan.predicted.peakBytes[1] += 64;
  expectRefused(plan, {"stage 1: predicted peak"});
}

TEST(PlanVerifier, NothingOverlapsAParameter) {
  Plan plan = samplePlan();
  plan.values[valueNamed(plan, "g0")].offset = plan.values[valueNamed(plan, "fc0_1.weight")].offset + 64;
  expectRefused(plan, {"'fc0_1.weight'", "is kept from step to step", "'g0'", "overlaps"});
  plan = samplePlan();
  plan.values[valueNamed(plan, "sum fc0_1.weight")].offset = plan.values[valueNamed(plan, "fc0_1.weight")].offset;
  expectRefused(plan, {"'sum fc0_1.weight'", "lies on a parameter"});
}

TEST(PlanVerifier, WhatOutlivesAChunkSharesNoByte) {
  Plan plan = samplePlan();
  plan.values[valueNamed(plan, "g0")].offset = plan.values[valueNamed(plan, "a0_0")].offset + 64;
  expectRefused(plan, {"outlives its chunk", "'a0_0'", "'g0'"});
}

TEST(PlanVerifier, TemporariesMayShareBytesAfterEachOther) {
  Plan plan = chainPlan();
  ASSERT_TRUE(verify(plan)) << verify(plan).message();
  plan.values[2].offset = plan.values[0].offset; // c in a's place: a is dead by then
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  plan.values[2].bytes = 128; // and larger than it: reaches into b, which `third` still reads
  expectRefused(plan, {"'third'", "share bytes"});
}

TEST(PlanVerifier, ALiveTemporaryMayNotBeOverwritten) {
  Plan plan = chainPlan();
  plan.tasks[3].work = kernelOf("k", {0, 2}, {3}); // `fourth` needs a again
  plan.values[2].offset = plan.values[0].offset;
  expectRefused(plan, {"'fourth'", "overwritten", "'a'"});
  plan.values[2].offset = 128;
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
}

TEST(PlanVerifier, AccessesToTheSameBytesAreOrdered) {
  Plan plan = chainPlan();
  plan.tasks[1].deps = {};
  expectRefused(plan, {"ops[1] ('second') reads", "no dependency puts it after ops[0] ('first')"});
  plan = chainPlan();
  plan.values[2].offset = 64 * 8;
  plan.tasks.push_back(plan.tasks[0]); // writes a again, after nothing
  plan.tasks.back().name = "late";
  plan.chunks[0].tasks.push_back(4);
  plan.tasks.back().deps = {0};
  expectRefused(plan, {"'late') writes", "after ops[1] ('second'), which reads"});
  plan.tasks.back().deps = {1};
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
}

TEST(PlanVerifier, AReceivedValueIsReadAfterItsFinish) {
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "fc1_0/matmul")].deps = {taskNamed(plan, "receive h1")};
  expectRefused(plan, {"'fc1_0/matmul') reads", "'receive h1'"});
}

TEST(PlanVerifier, AnOutputIsWrittenAndKept) {
  Plan plan = chainPlan();
  plan.programs[0].outputs.push_back({"lost", {0}});
  plan.values[2].offset = plan.values[0].offset;
  expectRefused(plan, {"the runtime reads", "'a'", "overwritten"});
  plan = chainPlan();
  plan.values.push_back(plan.values[0]);
  plan.values.back().offset = 1024;
  plan.programs[0].outputs.push_back({"never", {4}});
  expectRefused(plan, {"'never'", "never written"});
}

TEST(PlanVerifier, WhatLiesInAPlaceIsTheValueThatWasWrittenThere) {
  Plan plan = chainPlan();
  plan.values.push_back(plan.values[0]); // in the same place as a, but nothing writes it
  plan.values.back().name = "other";
  plan.tasks[1].work = kernelOf("k", {4}, {1});
  expectRefused(plan, {"'second') reads values[4] ('other')", "no op of the program does"});
}

TEST(PlanVerifier, ReadingWhatNobodyWrote) {
  Plan plan = chainPlan();
  plan.tasks[0].work = kernelOf("k", {2}, {0});
  expectRefused(plan, {"'first') reads", "nothing has written it"});
}

TEST(PlanVerifier, LoopsTouchWhatTheirBodiesTouch) {
  Plan plan = chainPlan();
  Task loop;
  loop.name = "repeat";
  loop.work = Loop{1, 3};
  loop.deps = {0};
  plan.tasks.push_back(loop);
  plan.chunks.push_back({0, 0, Phase::forward, {1, 2}}); // second and third move into the body
  plan.chunks[0].tasks = {0, 4, 3};
  plan.tasks[1].deps = {};
  plan.tasks[3].deps = {4};
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  plan.tasks[3].deps = {};
  expectRefused(plan, {"'fourth') reads", "'repeat'"});
  plan.tasks[3].deps = {4};
  plan.chunks[1].tasks.push_back(4);
  plan.chunks[0].tasks = {0, 3};
  expectRefused(plan, {"contain themselves"});
}

TEST(PlanVerifier, CollectivesOverPipeJoinAllStages) {
  Plan plan = samplePlan({.data = 1});
  for (uint32_t stage : {0u, 1u}) {
    Task &task = plan.tasks[taskNamed(plan, "grad fc" + std::to_string(stage) + "_0.weight/all_reduce")];
    setAxis(task, Axis::pipe);
    if (stage == 0)
      expectRefused(plan, {"over pipe on 1 of 2 stages"});
  }
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
}

TEST(PlanVerifier, CollectivesAreNumberedInTheirOrder) {
  Plan plan = samplePlan();
  setChannel(plan.tasks[taskNamed(plan, "grad fc0_1.weight/all_reduce")], 0);
  expectRefused(plan, {"grad fc0_1.weight/all_reduce", "position 0"});
}

TEST(PlanVerifier, ReplicasStayReplicas) {
  Plan plan = samplePlan();
  setAxis(plan.tasks[taskNamed(plan, "grad fc0_1.weight/all_reduce")], Axis::tensor);
  expectRefused(plan, {"update fc0_1.weight", "differs over data", "expected a reduction"});
  plan = samplePlan();
  setAxis(plan.tasks[taskNamed(plan, "loss/all_reduce")], Axis::tensor);
  expectRefused(plan, {"output 'loss'", "differs over data"});
  plan = samplePlan();
  plan.tasks[taskNamed(plan, "grad fc0_1.weight/all_reduce")].as<AllReduce>()->value =
      valueNamed(plan, "sum fc0_0.weight");
  expectRefused(plan, {"grad fc0_1.weight/all_reduce", "which was summed over it before"});
  plan = samplePlan();
  plan.tasks[taskNamed(plan, "grad fc0_1.weight/matmul")].as<Kernel>()->buffers.pop_back();
  expectRefused(plan, {"nothing is added to", "'sum fc0_1.weight'"});
}

TEST(PlanVerifier, ThousandsOfOpsTakeLessThanASecond) {
  Plan plan = samplePlan({.stages = 2, .microbatches = 16, .layers = 4000});
  std::clock_t start = std::clock(); // of the processor: a loaded machine makes others wait, not this
  EXPECT_TRUE(verify(plan)) << verify(plan).message();
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("%zu ops verified in %.3f s\n", plan.tasks.size(), seconds);
#if defined(NDEBUG) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(seconds, 5.0) << "a loaded machine is given five times the goal";
#endif
}
