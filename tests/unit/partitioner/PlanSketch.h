// SPDX-License-Identifier: Apache-2.0
// Plans by hand, as buildPlan leaves them: values without places, tasks without dependencies, chunks without actions.
#pragma once

#include "tests/unit/plan/HandTasks.h"

#include <algorithm>
#include <string>
#include <vector>

namespace dg::partitioner::testing {

class PlanSketch {
public:
  explicit PlanSketch(uint32_t numStages) {
    plan.mesh.sizes = {numStages, 2, 1};
    plan.memory.resize(numStages);
  }

  void addProgram(plan::ProgramKind kind, uint32_t microbatches) {
    plan::Program program;
    program.kind = kind;
    program.microbatches = microbatches;
    plan.programs.push_back(program);
  }

  /// A value of `elements` floats.
  plan::ValueId addValue(uint32_t stage, plan::ValueKind kind, uint64_t elements) {
    plan::Value value;
    value.name = "v" + std::to_string(plan.values.size());
    value.stage = stage;
    value.kind = kind;
    value.shape = value.globalShape = {int64_t(elements)};
    value.sharding = {std::nullopt};
    value.bytes = 4 * elements;
    plan.values.push_back(value);
    return plan::ValueId(plan.values.size() - 1);
  }

  /// Tasks go to the chunk that was added last.
  plan::ChunkId addChunk(uint32_t stage, plan::Phase phase) {
    plan.chunks.push_back({uint32_t(plan.programs.size() - 1), stage, phase, {}});
    return plan::ChunkId(plan.chunks.size() - 1);
  }

  plan::TaskId addTask(plan::TaskKind kind, std::vector<plan::ValueId> reads, std::vector<plan::ValueId> writes) {
    plan::Task task;
    task.name = "t" + std::to_string(plan.tasks.size());
    task.op = "dg.op";
    task.stage = plan.chunks.back().stage;
    if (kind == plan::TaskKind::kernel)
      task.work = plan::testing::kernelOf("kernel", reads, writes);
    else
      task.work = plan::testing::workOf(kind, reads.empty() ? writes : reads);
    plan.tasks.push_back(task);
    plan.chunks.back().tasks.push_back(plan::TaskId(plan.tasks.size() - 1));
    return plan.chunks.back().tasks.back();
  }

  plan::TaskId addKernel(std::vector<plan::ValueId> reads, std::vector<plan::ValueId> writes) {
    return addTask(plan::TaskKind::kernel, std::move(reads), std::move(writes));
  }

  void addSend(plan::ValueId value, uint32_t peerStage, uint32_t channel) {
    plan::Task &task = plan.tasks[addTask(plan::TaskKind::send, {value}, {})];
    task.work = plan::Send{value, peerStage, channel};
  }

  /// Starts only; call addFinish before the value is read.
  plan::TaskId addReceive(plan::ValueId value, uint32_t peerStage, uint32_t channel) {
    plan::TaskId id = addTask(plan::TaskKind::receive, {}, {value});
    plan.tasks[id].work = plan::Receive{value, peerStage, channel};
    return id;
  }

  plan::TaskId addAllReduce(plan::ValueId value) {
    plan::TaskId id = addTask(plan::TaskKind::allReduce, {value}, {value});
    plan.tasks[id].work = plan::AllReduce{value, plan::Axis::data, numCollectives++, {}};
    return id;
  }

  void addFinish(plan::TaskId started) {
    plan.tasks[addTask(plan::TaskKind::finish, {}, {})].work = plan::Finish{started};
  }

  plan::Plan plan;

private:
  uint32_t numCollectives = 0;
};

} // namespace dg::partitioner::testing
