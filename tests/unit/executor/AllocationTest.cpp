// SPDX-License-Identifier: Apache-2.0
// Proves that a step allocates nothing, with a trace or without: every operator new of the process is counted.
#include "tests/unit/executor/TestDevice.h"
#include "tests/unit/executor/TestPlan.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <utility>

static std::atomic<uint64_t> numAllocations{0};

void *operator new(size_t bytes) {
  numAllocations.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace dg {
namespace {

void countUp(void *const *buffers, const dg_scalars *, uint32_t) { ++*static_cast<float *>(buffers[0]); }

TEST(AllocationTest, stepsAllocateNothing) {
  for (auto [threads, isTraced] : {std::pair(1u, false), {2u, false}, {1u, true}, {2u, true}}) {
    test::PlanMaker maker(1, 1, 1, 2);
    plan::ValueId value = maker.addValue("value", {1}, 0, 2);
    plan::ChunkId body = maker.addChunk(), chunk = maker.addChunk();
    maker.addKernel(body, "count", {value});
    plan::TaskId first = maker.addTask(chunk, plan::TaskKind::zero, "zero", {value});
    plan::TaskId loop = maker.addLoop(chunk, body, 3, {first});
    maker.addKernel(chunk, "count", {value}, {loop});
    maker.addAction(chunk, 0);
    maker.addAction(chunk, 1);
    test::TableLibrary library({{"count", countUp}});
    ProgressLine line{};
    ExecutorOptions options;
    options.threads = threads;
    options.leastSharedWork = {};
    options.progress = &line;
    StepTrace trace;
    options.trace = isTraced ? &trace : nullptr;
    auto executor = Executor::create(maker.plan, {}, test::makeTestDevice(library), nullptr, options);
    ASSERT_TRUE(executor) << executor.status().message();
    ASSERT_TRUE((*executor)->runStep(0, test::scalarsOf(1)));
    uint64_t before = numAllocations.load();
    bool isOk = true;
    for (int64_t step = 2; step < 100; ++step)
      isOk &= (*executor)->runStep(0, test::scalarsOf(step)).isOk();
    EXPECT_EQ(numAllocations.load() - before, 0u) << threads << " threads" << (isTraced ? ", traced" : "");
    size_t events = 0;
    for (size_t lane = 0; lane < trace.numLanes(); ++lane)
      events += trace.events(lane).size();
    EXPECT_EQ(events > 0, isTraced);
    EXPECT_TRUE(isOk);
  }
}

} // namespace
} // namespace dg
