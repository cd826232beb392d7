// SPDX-License-Identifier: Apache-2.0
// Proves what one rank promises: slots, loops, initial values, ports, traces, progress, and a named rejection of every
// plan that does not fit together.
#include "tests/unit/executor/Floats.h"
#include "tests/unit/executor/TestDevice.h"
#include "tests/unit/executor/TestPlan.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace dg {
namespace {

using plan::ChunkId;
using plan::Init;
using plan::TaskId;
using plan::TaskKind;
using plan::ValueId;
using test::floatsOf;
using test::PlanMaker;

void addInto(void *const *buffers, const dg_scalars *, uint32_t) {
  *static_cast<float *>(buffers[1]) += *static_cast<const float *>(buffers[0]);
}
void timesTen(void *const *buffers, const dg_scalars *, uint32_t) {
  *static_cast<float *>(buffers[1]) = *static_cast<const float *>(buffers[0]) * 10;
}
void countUp(void *const *buffers, const dg_scalars *, uint32_t) { ++*static_cast<float *>(buffers[0]); }
void lrTile(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  static_cast<float *>(buffers[0])[tile] = scalars->lr + float(tile);
}

/// Each of the tiles waits until all have begun, which one thread alone cannot bring about; gives up after 20 s.
std::atomic<uint32_t> numBegun;
void meet(void *const *buffers, const dg_scalars *, uint32_t tile) {
  ++numBegun;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (numBegun.load() % 3 != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  static_cast<float *>(buffers[0])[tile] = numBegun.load() % 3 == 0 ? 1 : 0;
}

/// 1 where a tile runs on another thread than the calling one, which waits at most 20 s for such a tile.
std::thread::id callingThread;
std::atomic<bool> hasHelper;
void tellThread(void *const *buffers, const dg_scalars *, uint32_t tile) {
  bool isElsewhere = std::this_thread::get_id() != callingThread;
  if (isElsewhere)
    hasHelper = true;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!hasHelper && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  static_cast<float *>(buffers[0])[tile] = isElsewhere ? 1 : 0;
}

test::TableLibrary testLibrary() {
  return test::TableLibrary({{"add", addInto},
                             {"times_ten", timesTen},
                             {"count", countUp},
                             {"lr", lrTile},
                             {"meet", meet},
                             {"thread", tellThread}});
}

std::unique_ptr<Executor> executorFor(const PlanMaker &maker, const KernelLibrary &library,
                                      const ExecutorOptions &options = {}) {
  auto executor = Executor::create(maker.plan, {}, test::makeTestDevice(library), nullptr, options);
  EXPECT_TRUE(executor) << executor.status().message();
  return executor ? std::move(*executor) : nullptr;
}

/// Two slots for four micro-batches: x·10 goes through y; the accumulator sees all four.
TEST(ExecutorTest, microbatchesUseTheirSlots) {
  for (uint32_t threads : {1u, 2u}) {
    PlanMaker maker(1, 1, 1, 4);
    ValueId x = maker.addValue("x", {1}, 0, 4), y = maker.addValue("y", {1}, 0, 2), sum = maker.addValue("sum", {1});
    maker.plan.programs[0].inputs = {{"x", {x}}};
    maker.plan.programs[0].outputs = {{"sum", {sum}}};
    ChunkId begin = maker.addChunk(plan::Phase::begin), forward = maker.addChunk();
    maker.addTask(begin, TaskKind::zero, "zero", {sum});
    TaskId first = maker.addKernel(forward, "times_ten", {x, y});
    TaskId second = maker.addKernel(forward, "add", {y, sum}, {first});
    maker.makeInPlace(second);
    maker.addAction(begin);
    for (uint32_t m = 0; m < 4; ++m)
      maker.addAction(forward, m);
    test::TableLibrary library = testLibrary();
    ProgressLine line{};
    ExecutorOptions options;
    options.threads = threads;
    options.leastSharedWork = {};
    options.progress = &line;
    auto executor = executorFor(maker, library, options);
    for (int64_t step = 1; step <= 2; ++step) {
      for (uint32_t m = 0; m < 4; ++m)
        *floatsOf(*executor, executor->findPort(0, "x").value(), m) = float(m + 1);
      ASSERT_TRUE(executor->runStep(0, test::scalarsOf(step)));
      EXPECT_EQ(*floatsOf(*executor, executor->findPort(0, "sum").value()), 100);
      EXPECT_EQ(*floatsOf(*executor, y, 0), 30);
      EXPECT_EQ(*floatsOf(*executor, y, 1), 40);
    }
    EXPECT_EQ(line.step.load(), 2u);
    EXPECT_EQ(line.microbatch.load(), 3u);
    EXPECT_EQ(executor->findPort(0, "nothing"), std::nullopt);
    EXPECT_EQ(executor->inputBuffer(77, 0), nullptr);
    EXPECT_EQ(executor->inspect(77, 0, {}).message(), "stage 0 has no value 77");
    EXPECT_EQ(executor->fill(77, 0, {}).message(), "stage 0 has no value 77");
    EXPECT_FALSE(executor->runStep(1, {}));
  }
}

/// 3 trips of (count, 5 trips of count): 3 · (1 + 5) = 18; and 4 slots of a tape, one for each trip of the other loop.
TEST(ExecutorTest, loopsOfLoops) {
  for (uint32_t threads : {1u, 3u}) {
    PlanMaker maker;
    ValueId total = maker.addValue("total", {1}), tape = maker.addValue("tape", {1}, 0, 4);
    ChunkId inner = maker.addChunk(), outer = maker.addChunk(), main = maker.addChunk(), record = maker.addChunk();
    maker.addKernel(inner, "count", {total});
    TaskId count = maker.addKernel(outer, "count", {total});
    maker.addLoop(outer, inner, 5, {count});
    TaskId loop = maker.addLoop(main, outer, 3);
    maker.addKernel(record, "times_ten", {total, tape});
    TaskId step = maker.addKernel(record, "count", {total}, {0});
    maker.plan.tasks[step].deps = {maker.plan.chunks[record].tasks[0]};
    maker.addLoop(main, record, 4, {loop});
    maker.addAction(main);
    test::TableLibrary library = testLibrary();
    ExecutorOptions options;
    options.threads = threads;
    options.leastSharedWork = {};
    auto executor = executorFor(maker, library, options);
    ASSERT_TRUE(executor->runStep(0, {}));
    EXPECT_EQ(*floatsOf(*executor, total), 22);
    for (uint32_t trip = 0; trip < 4; ++trip)
      EXPECT_EQ(*floatsOf(*executor, tape, trip), 180 + 10 * float(trip));
  }
}

TEST(ExecutorTest, helpersComeInEveryStep) {
  if (!test::runsOnCallingThreads)
    GTEST_SKIP() << "the device has no helpers";
  PlanMaker maker;
  ValueId met = maker.addValue("met", {3});
  ChunkId chunk = maker.addChunk();
  maker.addKernel(chunk, "meet", {met}, {}, 3);
  maker.addAction(chunk);
  test::TableLibrary library = testLibrary();
  ExecutorOptions options;
  options.threads = 3;
  options.leastSharedWork = {};
  auto executor = executorFor(maker, library, options);
  for (int step = 1; step <= 20; ++step) {
    numBegun = 0;
    ASSERT_TRUE(executor->runStep(0, test::scalarsOf(step)));
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(floatsOf(*executor, met)[i], 1) << "step " << step;
  }
}

/// A step of less work than it costs to call helpers in: the tiles, which would wait for each other on several threads,
/// find themselves alone.
TEST(ExecutorTest, smallStepsStayOnTheCallingThread) {
  if (!test::runsOnCallingThreads)
    GTEST_SKIP() << "the device has no helpers";
  PlanMaker maker;
  ValueId out = maker.addValue("out", {4});
  ChunkId chunk = maker.addChunk();
  maker.addKernel(chunk, "thread", {out}, {}, 4);
  maker.addAction(chunk);
  test::TableLibrary library = testLibrary();
  ExecutorOptions options;
  options.threads = 2;
  for (double flops : {0.0, 1e9}) {
    maker.plan.tasks[0].flops = flops;
    auto executor = executorFor(maker, library, options);
    callingThread = std::this_thread::get_id();
    for (int step = 1; step <= 20; ++step) {
      hasHelper = flops == 0; // then nobody waits
      ASSERT_TRUE(executor->runStep(0, test::scalarsOf(step)));
      float elsewhere = 0;
      for (int tile = 0; tile < 4; ++tile)
        elsewhere += floatsOf(*executor, out)[tile];
      ASSERT_EQ(elsewhere > 0, flops > 0) << "step " << step;
    }
  }
}

TEST(ExecutorTest, initialValuesAndScalars) {
  PlanMaker maker;
  ValueId weight = maker.addValue("weight", {4}), fixed = maker.addValue("fixed", {2});
  maker.plan.values[weight].init = {Init::Kind::constant, 2.5};
  maker.plan.values[fixed].init = {Init::Kind::file, 0};
  ValueId out = maker.addValue("out", {4});
  ChunkId chunk = maker.addChunk();
  maker.addKernel(chunk, "lr", {out}, {}, 4);
  maker.addAction(chunk);
  test::TableLibrary library = testLibrary();
  std::vector<float> tensor = {7, 8};
  ExecutorOptions options;
  options.initialTensor = [&](const std::string &name) -> Result<std::span<const std::byte>> {
    EXPECT_EQ(name, "fixed");
    return std::as_bytes(std::span(tensor));
  };
  auto executor = executorFor(maker, library, options);
  EXPECT_EQ(floatsOf(*executor, weight)[3], 2.5f);
  EXPECT_EQ(floatsOf(*executor, fixed)[1], 8);
  ASSERT_TRUE(executor->runStep(0, test::scalarsOf(1, 0.5f)));
  EXPECT_EQ(floatsOf(*executor, out)[3], 3.5f);

  EXPECT_EQ(Executor::create(maker.plan, {}, test::makeTestDevice(library), nullptr, {}).status().message(),
            "value 'fixed' starts from a file, but there are no initial tensors");
}

TEST(ExecutorTest, collectivesOfOneRankNeedNoTransport) {
  PlanMaker maker;
  ValueId a = maker.addValue("a", {2, 2}), b = maker.addValue("b", {2, 2}), c = maker.addValue("c", {2, 2});
  maker.plan.values[a].init = {Init::Kind::constant, 3};
  ChunkId chunk = maker.addChunk();
  TaskId reduce = maker.addTask(chunk, TaskKind::allReduce, "reduce", {a});
  TaskId gather = maker.addTask(chunk, TaskKind::allGather, "gather", {a, b}, {maker.addFinish(chunk, reduce)});
  TaskId slice = maker.addTask(chunk, TaskKind::slice, "slice", {b, c}, {maker.addFinish(chunk, gather)});
  for (TaskId id : {reduce, gather, slice})
    plan::testing::setAxis(maker.plan.tasks[id], plan::Axis::data);
  maker.addAction(chunk);
  test::TableLibrary library = testLibrary();
  auto executor = executorFor(maker, library);
  ASSERT_TRUE(executor->runStep(0, {}));
  EXPECT_EQ(floatsOf(*executor, c)[3], 3);
}

TEST(ExecutorTest, traceHasEveryTile) {
  for (uint32_t threads : {1u, 2u}) {
    PlanMaker maker;
    ValueId out = maker.addValue("out", {16});
    ChunkId chunk = maker.addChunk();
    maker.addKernel(chunk, "lr", {out}, {}, 16);
    maker.addAction(chunk);
    test::TableLibrary library = testLibrary();
    StepTrace trace;
    ExecutorOptions options;
    options.threads = threads;
    options.leastSharedWork = {};
    options.trace = &trace;
    auto executor = executorFor(maker, library, options);
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(executor->runStep(0, {}));
      uint32_t tiles = 0;
      for (size_t lane = 0; lane < trace.numLanes(); ++lane)
        for (const TraceEvent &event : trace.events(lane)) {
          tiles += event.tiles;
          EXPECT_LE(event.startNs, event.endNs);
          EXPECT_EQ(event.task, 0u);
        }
      EXPECT_EQ(tiles, 16u);
    }
  }
}

/// What create says about a plan that `spoil` has changed.
std::string refusal(const std::function<void(plan::Plan &)> &spoil) {
  PlanMaker maker;
  ValueId a = maker.addValue("a", {2}), b = maker.addValue("b", {2});
  ChunkId chunk = maker.addChunk();
  TaskId first = maker.addKernel(chunk, "times_ten", {a, b});
  maker.addKernel(chunk, "count", {a}, {first});
  maker.addAction(chunk);
  spoil(maker.plan);
  test::TableLibrary library = testLibrary();
  auto executor = Executor::create(maker.plan, {}, test::makeTestDevice(library), nullptr, {});
  return executor ? "accepted" : executor.status().message();
}

TEST(ExecutorTest, rejections) {
  EXPECT_EQ(refusal([](plan::Plan &) {}), "accepted");
  EXPECT_EQ(
      refusal([](plan::Plan &plan) { plan.tasks[0].as<plan::Kernel>()->symbol = "gone"; }),
      "program 'train' calls 1 kernels that its object lacks, the first is 'gone'; compile the job again with this "
      "dgc");
  EXPECT_EQ(
      refusal([](plan::Plan &plan) { plan.tasks[0].deps = {1}; }),
      "task 'times_ten' (dg.test, test.mlir:1:1) depends on task 1, which is not before it in its chunk; the plan is "
      "damaged: compile the job again");
  EXPECT_EQ(refusal([](plan::Plan &plan) { plan.tasks[1].work = plan::Copy{0, 9}; }),
            "task 'count' (dg.test, test.mlir:1:1) has buffer 9, which is not a value of stage 0; the plan is damaged: "
            "compile the job again");
  EXPECT_EQ(refusal([](plan::Plan &plan) { plan.tasks[1].work = plan::Loop{0, 1}; }),
            "chunk 0 loops over itself; compile the job again");
  EXPECT_EQ(refusal([](plan::Plan &plan) { plan.tasks[1].work = plan::Send{0, 1, 0}; }),
            "task 'count' (dg.test, test.mlir:1:1) talks to another rank, but this rank has no transport");
  EXPECT_EQ(
      refusal([](plan::Plan &plan) { plan.tasks[1].work = plan::Receive{0, 0, 0}; }),
      "task 'count' (dg.test, test.mlir:1:1) has no finish task in its chunk; the plan is damaged: compile the job "
      "again");
  EXPECT_EQ(refusal([](plan::Plan &plan) { plan.tasks[1].as<plan::Kernel>()->symbol = "count/0"; }),
            "program 'train' calls 1 kernels that its object lacks, the first is 'count/0'; compile the job again with "
            "this dgc");
  for (const auto &spoil : std::vector<std::function<void(plan::Plan &)>>{
           [](plan::Plan &plan) { plan.values[1].offset = 32; },
           [](plan::Plan &plan) { plan.values[1].offset = uint64_t(1) << 63; },
           [](plan::Plan &plan) { plan.values[1].slots = 0; },
           [](plan::Plan &plan) { plan.values[1].slots = 3; },
           [](plan::Plan &plan) { plan.values[1].bytes = 65; },
       })
    EXPECT_NE(refusal(spoil).find("which do not fit the arena of 128 bytes"), std::string::npos);

  PlanMaker maker;
  test::TableLibrary library = testLibrary();
  EXPECT_EQ(Executor::create(maker.plan, {0, 1, 0}, test::makeTestDevice(library), nullptr, {}).status().message(),
            "there is no rank at pipe 0, data 1, tensor 0: the mesh is 1 × 1 × 1");
  ExecutorOptions none;
  none.threads = 0;
  EXPECT_FALSE(Executor::create(maker.plan, {}, test::makeTestDevice(library), nullptr, none));
}

} // namespace
} // namespace dg
