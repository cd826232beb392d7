// SPDX-License-Identifier: Apache-2.0
// Proves that executors of several ranks, each in its own thread over the in-process transport, compute what one rank
// would: collectives, pipelines whose buffers are fewer than the micro-batches, and the words of a missed deadline.
#include "runtime/executor/RequestBound.h"
#include "runtime/executor/Staging.h"
#include "tests/unit/executor/Floats.h"
#include "tests/unit/executor/TestDevice.h"
#include "tests/unit/executor/TestPlan.h"
#include "tests/unit/transport/InProcessTransport.h"

#include <gtest/gtest.h>
#include <thread>

namespace dg {
namespace {

using plan::ChunkId;
using plan::TaskId;
using plan::TaskKind;
using plan::ValueId;
using test::floatsOf;
using test::PlanMaker;

constexpr size_t count = 1000;

float *floats(void *buffer) { return static_cast<float *>(buffer); }

void timesThree(void *const *buffers, const dg_scalars *, uint32_t tile) {
  for (size_t i = tile * count / 4; i < (tile + 1) * count / 4; ++i)
    floats(buffers[1])[i] = floats(buffers[0])[i] * 3;
}
void plusOne(void *const *buffers, const dg_scalars *, uint32_t) {
  for (size_t i = 0; i < count; ++i)
    floats(buffers[1])[i] = floats(buffers[0])[i] + 1;
}
void accumulate(void *const *buffers, const dg_scalars *, uint32_t) {
  for (size_t i = 0; i < count; ++i)
    floats(buffers[1])[i] = floats(buffers[1])[i] * 2 + floats(buffers[0])[i];
}

test::TableLibrary testLibrary() {
  return test::TableLibrary({{"times_three", timesThree}, {"plus_one", plusOne}, {"accumulate", accumulate}});
}

/// Runs `body(executor, rank)` for every rank of the plan, each in its own thread: once with messages between them,
/// once with arenas that all see; each with all values in device memory, every second one in pinned memory, and all.
void runRanks(plan::Plan plan, uint32_t threads, const std::function<void(Executor &, int64_t)> &body) {
  test::TableLibrary library = testLibrary();
  for (size_t round = 0; round < 6; ++round) {
    const size_t sharedBytes = round % 2 ? size_t(1) << 20 : 0, numPinned = round / 2;
    for (size_t i = 0; i < plan.values.size(); ++i)
      plan.values[i].space = i % 2 < numPinned ? plan::MemorySpace::pinned : plan::MemorySpace::device;
    auto transports = makeInProcessTransports(plan.mesh.numRanks(), 1024, sharedBytes);
    std::vector<std::thread> ranks;
    for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
      ranks.emplace_back([&, rank] {
        Transport &transport = *transports[size_t(rank)];
        ASSERT_EQ(transport.hostMemory() != nullptr, sharedBytes > 0);
        ExecutorOptions options;
        options.threads = threads;
        options.leastSharedWork = {};
        auto executor =
            Executor::create(plan, plan.mesh.coordinatesOf(rank), test::makeTestDevice(library), &transport, options);
        ASSERT_TRUE(executor) << executor.status().message();
        body(**executor, rank);
      });
    for (std::thread &rank : ranks)
      rank.join();
  }
}

class RanksTest : public testing::TestWithParam<uint32_t> {};

/// Every collective over data=4 of a data=4, tensor=2 mesh, so that groups are not ranks 0…3.
TEST_P(RanksTest, collectives) {
  PlanMaker maker(1, 4, 2);
  ValueId x = maker.addValue("x", {4, 6}), y = maker.addValue("y", {2, 3}), all = maker.addValue("all", {2, 12}),
          part = maker.addValue("part", {2, 12}), mine = maker.addValue("mine", {2, 3}),
          cut = maker.addValue("cut", {1, 6}), odd = maker.addValue("odd", {2, 6});
  ChunkId chunk = maker.addChunk();
  uint32_t channel = 0;
  auto collective = [&](TaskKind kind, std::vector<ValueId> buffers, std::vector<TaskId> deps = {}) {
    TaskId id = maker.addTask(chunk, kind, fmt::format("collective {}", channel), buffers, deps);
    plan::testing::setAxis(maker.plan.tasks[id], plan::Axis::data);
    plan::testing::setChannel(maker.plan.tasks[id], channel++);
    return id;
  };
  std::vector<TaskId> started = {collective(TaskKind::allReduce, {x}), collective(TaskKind::allGather, {y, all}),
                                 collective(TaskKind::reduceScatter, {part, mine})};
  for (size_t i : {1, 2})
    plan::testing::setDim(maker.plan.tasks[started[i]], 1);
  std::vector<TaskId> finished;
  for (TaskId id : started)
    finished.push_back(maker.addFinish(chunk, id));
  TaskId slice = maker.addTask(chunk, TaskKind::slice, "slice", {x, cut}, {finished[0]});
  plan::testing::setAxis(maker.plan.tasks[slice], plan::Axis::data);
  // Two columns to a rank: the third has what is left of six, the fourth nothing.
  TaskId uneven = maker.addTask(chunk, TaskKind::slice, "uneven", {x, odd}, {finished[0]});
  plan::testing::setAxis(maker.plan.tasks[uneven], plan::Axis::tensor);
  maker.addAction(chunk);

  runRanks(maker.plan, GetParam(), [&](Executor &executor, int64_t rank) {
    int64_t data = rank / 2, tensor = rank % 2;
    for (int step = 1; step <= 3; ++step) {
      for (int i = 0; i < 24; ++i) {
        floatsOf(executor, x)[i] = float(rank * 100 + i + step);
        floatsOf(executor, part)[i] = float(rank + i * step);
      }
      for (int i = 0; i < 6; ++i)
        floatsOf(executor, y)[i] = float(rank * 10 + i);
      Status status = executor.runStep(0, test::scalarsOf(step));
      ASSERT_TRUE(status) << status.message();
      // Ranks of a group: tensor, tensor + 2, … + 6; their sum is 4 · tensor + 12.
      float sumOfRanks = float(4 * tensor + 12);
      for (int i = 0; i < 24; ++i)
        EXPECT_EQ(floatsOf(executor, x)[i], sumOfRanks * 100 + 4 * float(i + step));
      for (int row = 0; row < 2; ++row)
        for (int column = 0; column < 12; ++column) {
          const int rank = column / 3 * 2 + tensor;
          EXPECT_EQ(floatsOf(executor, all)[row * 12 + column], float(rank * 10 + row * 3 + column % 3));
        }
      for (int row = 0; row < 2; ++row)
        for (int column = 0; column < 3; ++column)
          EXPECT_EQ(floatsOf(executor, mine)[row * 3 + column],
                    sumOfRanks + 4 * float((row * 12 + data * 3 + column) * step));
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(floatsOf(executor, cut)[i], floatsOf(executor, x)[data * 6 + i]);
      for (int i = 0; i < 12; ++i)
        EXPECT_EQ(floatsOf(executor, odd)[i], floatsOf(executor, x)[tensor * 12 + i]);
    }
  });
}

/// Two stages: x → ·3 → stage 1 → +1 → back to stage 0 → accumulated, where the order of micro-batches counts. `slots`
/// buffers for each sent value; `warmup` forwards before the first backward (all of them: GPipe).
void runPipeline(uint32_t threads, uint32_t microbatches, uint32_t slots, uint32_t warmup) {
  SCOPED_TRACE(fmt::format("{} threads, {} micro-batches, {} slots, warm-up {}", threads, microbatches, slots, warmup));
  PlanMaker maker(2, 1, 1, microbatches);
  ValueId x = maker.addValue("x", {count}, 0, microbatches), sent = maker.addValue("sent", {count}, 0, slots),
          gradient = maker.addValue("gradient", {count}, 0, slots), sum = maker.addValue("sum", {count}, 0);
  ValueId arrived = maker.addValue("arrived", {count}, 1, warmup), back = maker.addValue("back", {count}, 1, slots);
  auto message = [&](ChunkId chunk, TaskKind kind, ValueId value, uint32_t channel, std::vector<TaskId> deps = {}) {
    TaskId id = maker.addTask(chunk, kind, kind == TaskKind::send ? "send" : "receive", {value}, deps);
    plan::testing::setPeer(maker.plan.tasks[id], 1 - maker.plan.tasks[id].stage);
    plan::testing::setChannel(maker.plan.tasks[id], channel);
    return id;
  };
  ChunkId begin = maker.addChunk(plan::Phase::begin), forward0 = maker.addChunk(),
          backward0 = maker.addChunk(plan::Phase::backward), forward1 = maker.addChunk(plan::Phase::forward, 1),
          backward1 = maker.addChunk(plan::Phase::backward, 1);
  maker.addTask(begin, TaskKind::zero, "zero", {sum});
  message(forward0, TaskKind::send, sent, 0, {maker.addKernel(forward0, "times_three", {x, sent}, {}, 4)});
  TaskId finish = maker.addFinish(backward0, message(backward0, TaskKind::receive, gradient, 1));
  TaskId last = maker.addKernel(backward0, "accumulate", {gradient, sum}, {finish});
  maker.makeInPlace(last);
  maker.addFinish(forward1, message(forward1, TaskKind::receive, arrived, 0));
  message(backward1, TaskKind::send, back, 1, {maker.addKernel(backward1, "plus_one", {arrived, back})});

  maker.addAction(begin);
  for (uint32_t stage = 0; stage < 2; ++stage)
    for (uint32_t i = 0; i < microbatches + warmup; ++i) {
      if (i < microbatches)
        maker.addAction(stage == 0 ? forward0 : forward1, i);
      if (i + 1 >= warmup && i + 1 - warmup < microbatches)
        maker.addAction(stage == 0 ? backward0 : backward1, i + 1 - warmup);
    }

  runRanks(maker.plan, threads, [&](Executor &executor, int64_t rank) {
    for (int step = 1; step <= 4; ++step) {
      if (rank == 0)
        for (uint32_t m = 0; m < microbatches; ++m)
          for (size_t i = 0; i < count; ++i)
            floatsOf(executor, x, m)[i] = float(m * 5 + i % 97 + step);
      Status status = executor.runStep(0, test::scalarsOf(step));
      ASSERT_TRUE(status) << status.message();
      if (rank == 1)
        continue;
      for (size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (uint32_t m = 0; m < microbatches; ++m)
          expected = expected * 2 + float(m * 5 + i % 97 + step) * 3 + 1;
        ASSERT_EQ(floatsOf(executor, sum)[i], expected) << "element " << i << " of step " << step;
      }
    }
  });
}

TEST_P(RanksTest, pipelines) {
  runPipeline(GetParam(), 1, 1, 1);
  runPipeline(GetParam(), 4, 4, 4); // GPipe, a buffer for each
  runPipeline(GetParam(), 6, 2, 2); // 1F1B
  runPipeline(GetParam(), 6, 1, 1); // every send is waited for before its buffer is written again
}

/// A send's bytes are used by another value later in the same chunk: it is complete before they are overwritten.
TEST_P(RanksTest, memoryOfASendIsReused) {
  PlanMaker maker(2);
  ValueId x = maker.addValue("x", {count}, 0), sent = maker.addValue("sent", {count}, 0),
          reused = maker.addValue("reused", {count}, 0);
  maker.plan.values[reused].offset = maker.plan.values[sent].offset;
  ValueId arrived = maker.addValue("arrived", {count}, 1);
  ChunkId chunk0 = maker.addChunk(), chunk1 = maker.addChunk(plan::Phase::forward, 1);
  TaskId made = maker.addKernel(chunk0, "times_three", {x, sent}, {}, 4);
  TaskId send = maker.addTask(chunk0, TaskKind::send, "send", {sent}, {made});
  plan::testing::setPeer(maker.plan.tasks[send], 1);
  maker.addKernel(chunk0, "plus_one", {x, reused}, {send});
  TaskId receive = maker.addTask(chunk1, TaskKind::receive, "receive", {arrived});
  maker.addFinish(chunk1, receive);
  maker.addAction(chunk0);
  maker.addAction(chunk1);
  runRanks(maker.plan, GetParam(), [&](Executor &executor, int64_t rank) {
    for (int step = 1; step <= 20; ++step) {
      if (rank == 0)
        floatsOf(executor, x).write(std::vector<float>(count, float(step)));
      Status status = executor.runStep(0, test::scalarsOf(step));
      ASSERT_TRUE(status) << status.message();
      if (rank == 0)
        EXPECT_EQ(floatsOf(executor, reused)[0], float(step + 1));
      else
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(floatsOf(executor, arrived)[i], float(step * 3));
    }
  });
}

TEST_P(RanksTest, deadlineNamesWhoWaitsForWhom) {
  PlanMaker maker(1, 2, 1, 3);
  ValueId gradient = maker.addValue("grad fc1.weight", {4});
  ChunkId chunk = maker.addChunk();
  TaskId reduce = maker.addTask(chunk, TaskKind::allReduce, "grad fc1.weight/all_reduce", {gradient});
  plan::testing::setAxis(maker.plan.tasks[reduce], plan::Axis::data);
  maker.plan.tasks[reduce].op = "dg.all_reduce";
  maker.plan.tasks[reduce].source = "mlp.mlir:4:8";
  maker.addFinish(chunk, reduce);
  maker.addAction(chunk, 2);
  for (size_t sharedBytes : {size_t(0), size_t(1) << 20}) {
    auto transports = makeInProcessTransports(2, 1024, sharedBytes);
    test::TableLibrary library = testLibrary();
    ProgressLine line{};
    ExecutorOptions options;
    options.threads = GetParam();
    options.leastSharedWork = {};
    options.timeout = std::chrono::milliseconds(100);
    options.progress = &line;
    auto executor =
        Executor::create(maker.plan, {0, 1, 0}, test::makeTestDevice(library), transports[1].get(), options);
    ASSERT_TRUE(executor) << executor.status().message();
    Status status = (*executor)->runStep(0, test::scalarsOf(17));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.kind(), ErrorKind::lost);
    EXPECT_EQ(
        status.message(),
        "rank 1 waited 0.1 s for rank 0 in 'grad fc1.weight/all_reduce' (dg.all_reduce, mlp.mlir:4:8), step 17, "
        "micro-batch 2: no answer before the deadline; rank 0 has stopped, or needs longer than that for its part of "
        "the step");
    EXPECT_EQ(line.waitingFor.load(), 1);
    EXPECT_EQ((*executor)->runStep(0, test::scalarsOf(18)).message(), status.message());
  }
}

/// A transport whose messages all fail, as when the peer's process is gone.
class BrokenTransport final : public Transport {
public:
  int64_t rank() const override { return 0; }
  int64_t numRanks() const override { return 2; }
  Request startSend(int64_t, uint64_t, const void *, size_t) override { return 0; }
  Request startReceive(int64_t, uint64_t, void *, size_t) override { return 0; }
  void advance() override {}
  Progress look(Request) override { return Progress::failed; }
  bool hasRoom() const override { return true; }
  Status failure() const override { return Status::error(ErrorKind::runFailed, "connection reset"); }
  void cancelAll() override { isCancelled = true; }
  uint64_t activity(int64_t) const override { return 0; }
  bool isCancelled = false;
};

TEST_P(RanksTest, lostPeerIsNamed) {
  PlanMaker maker(2);
  ValueId sent = maker.addValue("sent", {4});
  ChunkId chunk = maker.addChunk();
  TaskId send = maker.addTask(chunk, TaskKind::send, "fc1/send", {sent});
  plan::testing::setPeer(maker.plan.tasks[send], 1);
  maker.addAction(chunk);
  BrokenTransport transport;
  test::TableLibrary library = testLibrary();
  ExecutorOptions options;
  options.threads = GetParam();
  options.leastSharedWork = {};
  auto executor = Executor::create(maker.plan, {}, test::makeTestDevice(library), &transport, options);
  ASSERT_TRUE(executor) << executor.status().message();
  Status status = (*executor)->runStep(0, test::scalarsOf(3));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.message(), "rank 0 lost rank 1 in 'fc1/send' (dg.test, test.mlir:1:1), step 3, micro-batch 0: "
                              "connection reset");
  EXPECT_TRUE(transport.isCancelled);
}

TEST(Staging, isForValuesThatOthersDoNotReach) {
  PlanMaker maker(1, 2);
  ValueId large = maker.addValue("large", {1000}), small = maker.addValue("small", {4});
  maker.plan.values[small].space = plan::MemorySpace::pinned;
  ChunkId chunk = maker.addChunk();
  TaskId first = maker.addTask(chunk, TaskKind::allReduce, "first", {large}),
         second = maker.addTask(chunk, TaskKind::allReduce, "second", {small}),
         both = maker.addTask(chunk, TaskKind::allGather, "both", {small, large});
  const Staging onHost(maker.plan, 0, true), elsewhere(maker.plan, 0, false);
  for (TaskId task : {first, second, both})
    EXPECT_FALSE(onHost.has(task));
  EXPECT_EQ(onHost.bytes(), maker.plan.memory[0].arenaBytes);
  EXPECT_TRUE(elsewhere.has(first));
  EXPECT_FALSE(elsewhere.has(second));
  EXPECT_TRUE(elsewhere.has(both));
  // The arena up to the end of `small`, then twins of large, small and large.
  EXPECT_EQ(elsewhere.bytes(), 4096u + 4032 + 64 + 4032);
}

TEST(RequestBound, isEnoughForAllThatIsOpenAtOnce) {
  // 600 gradients over three ranks: two segments of each, parts and sums, to and from two others.
  PlanMaker maker(2, 3);
  ChunkId chunk = maker.addChunk();
  for (int i = 0; i < 600; ++i) {
    ValueId gradient = maker.addValue("gradient", {4});
    maker.addTask(chunk, TaskKind::allReduce, "all_reduce", {gradient}); // over data
  }
  maker.addTask(chunk, TaskKind::send, "send", {maker.addValue("sent", {4}, 0, 5)});
  EXPECT_EQ(requestsNeeded(maker.plan, 0), 600u * 2 * 2 * 2 * 2 + 5);
  EXPECT_EQ(requestsNeeded(maker.plan, 1), 0u);
  // Programs do not run at the same time.
  maker.plan.programs.push_back(maker.plan.programs[0]);
  ChunkId other = maker.addChunk();
  maker.plan.chunks[other].program = 1;
  maker.addTask(other, TaskKind::receive, "receive", {maker.addValue("received", {4})});
  EXPECT_EQ(requestsNeeded(maker.plan, 0), 600u * 2 * 2 * 2 * 2 + 5);
}

INSTANTIATE_TEST_SUITE_P(Threads, RanksTest, testing::Values(1, 2));

} // namespace
} // namespace dg
