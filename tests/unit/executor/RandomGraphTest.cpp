// SPDX-License-Identifier: Apache-2.0
// Proves that random static graphs, with micro-batches in slots and loops in loops, leave the same bytes in the arena
// for any number of threads as a plain interpreter that runs one task after another.
#include "tests/unit/executor/TestDevice.h"
#include "tests/unit/executor/TestPlan.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace dg {
namespace {

using plan::ChunkId;
using plan::TaskId;
using plan::TaskKind;
using plan::ValueId;
using test::PlanMaker;

constexpr int64_t numElements = 256;

/// last = a mix of all buffers and the step. Not symmetric in anything, so that a wrong order shows; integers below
/// 2^13, so that f32 is exact.
template <uint32_t numInputs, uint32_t tiles, bool isInPlace>
void mix(void *const *buffers, const dg_scalars *scalars, uint32_t tile) {
  float *out = static_cast<float *>(buffers[numInputs]);
  constexpr int64_t part = numElements / tiles;
  for (int64_t i = tile * part; i < (tile + 1) * part; ++i) {
    int64_t sum = isInPlace ? int64_t(out[i]) * 7 : 0;
    for (uint32_t input = 0; input < numInputs; ++input)
      sum = sum * 3 + int64_t(static_cast<const float *>(buffers[input])[i]) + input + 1;
    out[i] = float((sum + scalars->step + int64_t(i)) % 8191);
  }
}

template <uint32_t numInputs, uint32_t tiles> void addMixes(std::map<std::string, dg_kernel> &table) {
  table[fmt::format("mix{}x{}", numInputs, tiles)] = mix<numInputs, tiles, false>;
  table[fmt::format("mix{}x{}inplace", numInputs, tiles)] = mix<numInputs, tiles, true>;
}

std::map<std::string, dg_kernel> mixes() {
  std::map<std::string, dg_kernel> table;
  addMixes<1, 1>(table), addMixes<1, 4>(table), addMixes<1, 32>(table);
  addMixes<2, 1>(table), addMixes<2, 4>(table), addMixes<2, 32>(table);
  addMixes<3, 1>(table), addMixes<3, 4>(table), addMixes<3, 32>(table);
  return table;
}

class RandomPlan {
public:
  explicit RandomPlan(uint32_t seed) : random(seed) {
    uint32_t numValues = 3 + pick(20);
    for (uint32_t i = 0; i < numValues; ++i)
      maker.addValue(fmt::format("v{}", i), {numElements}, 0, 1 + pick(3));
    maker.plan.programs[0].microbatches = 1 + pick(4);
    uint32_t numChunks = 1 + pick(3);
    std::vector<ChunkId> chunks;
    for (uint32_t i = 0; i < numChunks; ++i)
      chunks.push_back(makeChunk(0));
    for (ChunkId chunk : chunks)
      for (uint32_t m = 0; m < maker.plan.programs[0].microbatches; ++m)
        maker.addAction(chunk, m);
  }

  const plan::Plan &plan() const { return maker.plan; }

private:
  uint32_t pick(uint32_t bound) { return uint32_t(random() % bound); }

  ChunkId makeChunk(uint32_t depth) {
    ChunkId chunk = maker.addChunk();
    uint32_t numTasks = depth == 0 ? 1 + pick(80) : 1 + pick(8);
    for (uint32_t i = 0; i < numTasks; ++i) {
      if (depth < 3 && pick(20) == 0) {
        ChunkId body = makeChunk(depth + 1);
        maker.addLoop(chunk, body, pick(4), maker.plan.chunks[chunk].tasks);
      } else {
        addRandomTask(chunk);
      }
    }
    return chunk;
  }

  void addRandomTask(ChunkId chunk) {
    std::vector<ValueId> values(maker.plan.values.size());
    for (ValueId i = 0; i < values.size(); ++i)
      values[i] = i;
    std::shuffle(values.begin(), values.end(), random);
    uint32_t which = pick(12);
    TaskId id;
    if (which == 0) {
      id = maker.addTask(chunk, TaskKind::zero, "zero", {values[0]});
    } else if (which == 1) {
      id = maker.addTask(chunk, TaskKind::copy, "copy", {values[0], values[1]});
    } else {
      uint32_t numInputs = std::min<uint32_t>(1 + pick(3), uint32_t(values.size()) - 1);
      uint32_t tiles = std::array{1u, 4u, 32u}[pick(3)];
      values.resize(numInputs + 1);
      bool isInPlace = pick(3) == 0;
      id = maker.addKernel(chunk, fmt::format("mix{}x{}{}", numInputs, tiles, isInPlace ? "inplace" : ""), values, {},
                           tiles);
      if (isInPlace)
        maker.makeInPlace(id);
    }
    plan::Task &task = maker.plan.tasks[id];
    task.flops = pick(1'000'000); // what is urgent is then seldom what comes first
    for (TaskId earlier : maker.plan.chunks[chunk].tasks)
      if (earlier != id && conflicts(maker.plan.tasks[earlier], task))
        task.deps.push_back(earlier);
  }

  /// One of them writes (the last buffer) what the other uses; loops conflict with everything.
  static bool conflicts(const plan::Task &a, const plan::Task &b) {
    if (a.as<plan::Loop>() || b.as<plan::Loop>())
      return true;
    auto uses = [](const plan::Task &task, ValueId value) {
      std::vector<ValueId> values = valuesOf(task);
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    return uses(a, valuesOf(b).back()) || uses(b, valuesOf(a).back());
  }

  std::mt19937 random;
  PlanMaker maker;
};

/// The oracle: one task after another, in the plan's order, on memory of its own.
class Interpreter {
public:
  Interpreter(const plan::Plan &plan, const KernelLibrary &library)
      : plan(plan), library(library), memory(plan.memory[0].arenaBytes) {}

  void runStep(const dg_scalars &scalars) {
    for (const plan::Action &action : plan.programs[0].actions[0])
      runChunk(action.chunk, action.microbatch, scalars);
  }
  void runChunk(ChunkId chunk, uint32_t index, const dg_scalars &scalars) {
    for (TaskId id : plan.chunks[chunk].tasks) {
      const plan::Task &task = plan.tasks[id];
      std::vector<void *> buffers;
      for (ValueId value : valuesOf(task))
        buffers.push_back(memory.data() + plan.values[value].offset +
                          index % plan.values[value].slots * plan.values[value].stride);
      if (const auto *loop = task.as<plan::Loop>())
        for (uint32_t trip = 0; trip < loop->trips; ++trip)
          runChunk(loop->body, trip, scalars);
      else if (const auto *zero = task.as<plan::Zero>())
        std::memset(buffers[0], 0, plan.values[zero->value].bytes);
      else if (const auto *copy = task.as<plan::Copy>())
        std::memcpy(buffers[1], buffers[0], plan.values[copy->from].bytes);
      else if (const auto *kernel = task.as<plan::Kernel>())
        for (uint32_t tile = *library.tilesOf(kernel->symbol); tile-- > 0;)
          library.find(kernel->symbol)(buffers.data(), &scalars, tile);
    }
  }

  const plan::Plan &plan;
  const KernelLibrary &library;
  std::vector<std::byte> memory;
};

void compareWithInterpreter(uint32_t seed, uint32_t threads, bool isTraced) {
  SCOPED_TRACE(fmt::format("seed {}, {} threads", seed, threads));
  RandomPlan random(seed);
  test::TableLibrary library(mixes());
  Interpreter oracle(random.plan(), library);
  StepTrace trace;
  ExecutorOptions options;
  options.threads = threads;
  options.leastSharedWork = {};
  options.trace = isTraced ? &trace : nullptr;
  auto executor = Executor::create(random.plan(), {}, test::makeTestDevice(library), nullptr, options);
  ASSERT_TRUE(executor) << executor.status().message();
  for (int64_t step = 1; step <= 5; ++step) {
    dg_scalars scalars = test::scalarsOf(step);
    oracle.runStep(scalars);
    Status status = (*executor)->runStep(0, scalars);
    ASSERT_TRUE(status) << status.message();
    for (ValueId id = 0; id < random.plan().values.size(); ++id)
      for (uint32_t slot = 0; slot < random.plan().values[id].slots; ++slot) {
        const plan::Value &value = random.plan().values[id];
        Status same = (*executor)->inspect(id, slot, [&](std::span<const std::byte> bytes) {
          const std::byte *expected = &oracle.memory[value.offset + slot * value.stride];
          return std::memcmp(bytes.data(), expected, value.bytes) == 0
                     ? Status::ok()
                     : Status::error(ErrorKind::runFailed, "other bytes");
        });
        ASSERT_TRUE(same) << same.message() << ": " << value.name << " slot " << slot << " after step " << step;
      }
  }
}

class RandomGraphTest : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomGraphTest, sameBytesAsTheInterpreter) {
  for (uint32_t seed = 1; seed <= 40; ++seed)
    compareWithInterpreter(seed, GetParam(), false);
}

TEST_P(RandomGraphTest, tracingChangesNothing) {
  for (uint32_t seed = 100; seed <= 110; ++seed)
    compareWithInterpreter(seed, GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(Threads, RandomGraphTest, testing::Values(1, 2, 3, 4));

} // namespace
} // namespace dg
