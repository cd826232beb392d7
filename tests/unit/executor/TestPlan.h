// SPDX-License-Identifier: Apache-2.0
// Small plans made by hand, and kernels that are C++ functions: what the executor's tests share.
#pragma once

#include "runtime/device/host/KernelLibrary.h"
#include "runtime/executor/Executor.h"
#include "tests/unit/plan/HandTasks.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dg::test {

/// Kernels by name. "name/4" is the kernel "name" with four tiles.
class TableLibrary final : public KernelLibrary {
public:
  explicit TableLibrary(std::map<std::string, dg_kernel> kernels) : kernels(std::move(kernels)) {}
  dg_kernel find(const std::string &symbol) const override {
    auto found = kernels.find(symbol.substr(0, symbol.find('/')));
    return found == kernels.end() ? nullptr : found->second;
  }
  std::optional<uint32_t> tilesOf(const std::string &symbol) const override {
    size_t slash = symbol.find('/');
    return slash == std::string::npos ? 1 : uint32_t(std::stoul(symbol.substr(slash + 1)));
  }

private:
  std::map<std::string, dg_kernel> kernels;
};

/// Builds a plan value by value and task by task; places values one after another in their stage's arena.
class PlanMaker {
public:
  explicit PlanMaker(int64_t pipe = 1, int64_t data = 1, int64_t tensor = 1, uint32_t microbatches = 1) {
    plan.mesh.sizes = {pipe, data, tensor};
    plan.memory.resize(size_t(pipe));
    plan.programs.resize(1);
    plan.programs[0].kind = plan::ProgramKind::train;
    plan.programs[0].microbatches = microbatches;
    plan.programs[0].actions.resize(size_t(pipe));
  }

  plan::ValueId addValue(const std::string &name, std::vector<int64_t> shape, uint32_t stage = 0, uint32_t slots = 1,
                         plan::DType dtype = plan::DType::f32) {
    plan::Value value;
    value.name = name;
    value.stage = stage;
    value.dtype = dtype;
    value.shape = value.globalShape = shape;
    value.sharding.resize(shape.size());
    value.bytes = uint64_t(plan::sizeOf(dtype));
    for (int64_t size : shape)
      value.bytes *= uint64_t(size);
    value.slots = slots;
    value.stride = (value.bytes + 63) / 64 * 64;
    uint64_t &end = plan.memory[stage].arenaBytes;
    value.offset = end;
    end += value.stride * slots;
    plan.values.push_back(value);
    return plan::ValueId(plan.values.size() - 1);
  }

  plan::ChunkId addChunk(plan::Phase phase = plan::Phase::forward, uint32_t stage = 0) {
    plan::Chunk chunk;
    chunk.stage = stage;
    chunk.phase = phase;
    plan.chunks.push_back(chunk);
    return plan::ChunkId(plan.chunks.size() - 1);
  }

  plan::TaskId addTask(plan::ChunkId chunk, plan::TaskKind kind, const std::string &name,
                       std::vector<plan::ValueId> buffers, std::vector<plan::TaskId> deps = {}) {
    plan::Task task;
    task.name = name;
    task.op = "dg.test";
    task.source = "test.mlir:1:1";
    task.stage = plan.chunks[chunk].stage;
    task.work = plan::testing::workOf(kind, buffers);
    task.deps = std::move(deps);
    plan.tasks.push_back(task);
    plan.chunks[chunk].tasks.push_back(plan::TaskId(plan.tasks.size() - 1));
    return plan::TaskId(plan.tasks.size() - 1);
  }

  /// A kernel that reads all buffers but the last, and writes that.
  plan::TaskId addKernel(plan::ChunkId chunk, const std::string &symbol, std::vector<plan::ValueId> buffers,
                         std::vector<plan::TaskId> deps = {}, uint32_t tiles = 1) {
    plan::TaskId id = addTask(chunk, plan::TaskKind::kernel, symbol, buffers, std::move(deps));
    plan.tasks[id].as<plan::Kernel>()->symbol = tiles == 1 ? symbol : symbol + "/" + std::to_string(tiles);
    return id;
  }

  /// The kernel reads the last buffer too.
  void makeInPlace(plan::TaskId kernel) {
    plan.tasks[kernel].as<plan::Kernel>()->buffers.back().access = plan::Access::readWrite;
  }

  plan::TaskId addFinish(plan::ChunkId chunk, plan::TaskId communication) {
    plan::TaskId id = addTask(chunk, plan::TaskKind::finish, "finish", {}, {communication});
    plan.tasks[id].work = plan::Finish{communication};
    return id;
  }

  plan::TaskId addLoop(plan::ChunkId chunk, plan::ChunkId body, uint32_t trips, std::vector<plan::TaskId> deps = {}) {
    plan::TaskId id = addTask(chunk, plan::TaskKind::loop, "loop", {}, std::move(deps));
    plan.tasks[id].work = plan::Loop{body, trips};
    return id;
  }

  void addAction(plan::ChunkId chunk, uint32_t microbatch = 0) {
    plan.programs[0].actions[plan.chunks[chunk].stage].push_back({chunk, microbatch});
  }

  plan::Plan plan;
};

inline dg_scalars scalarsOf(int64_t step, float lr = 0) {
  dg_scalars scalars{};
  scalars.step = step;
  scalars.lr = lr;
  return scalars;
}

} // namespace dg::test
