// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/time/WhatIf.h"
#include "tools/dgviz/FlowGraph.h"

#include "partitioner/predict/Simulator.h"
#include "partitioner/schedule/PlanSchedule.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

namespace {

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

WhatIf::WhatIf(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs)
    : plan(plan), view(view), costs(costs), program(*view.program),
      index(uint32_t(view.program - plan.programs.data())) {}

WhatIf::Answer WhatIf::withMicrobatches(uint32_t count) const {
  int64_t data = plan.mesh.sizeOf(Axis::data), rowsNow = divideUp(program.batch, data * program.microbatches);
  if (plan.numStages() < 2 || !isPlain() || program.batch < data * count)
    return std::optional<double>();
  Plan changed = plan;
  scale(changed, double(divideUp(program.batch, data * count)) / double(rowsNow));
  if (isTraining())
    separateUpdates(changed);
  changed.programs[index].microbatches = count;
  return simulate(std::move(changed), ownSchedule());
}

WhatIf::Answer WhatIf::withAccumulation(uint32_t batches) const {
  if (!isTraining() || !isPlain())
    return std::optional<double>();
  Plan changed = plan;
  separateUpdates(changed);
  changed.programs[index].microbatches *= batches;
  return simulate(std::move(changed), ownSchedule());
}

WhatIf::Answer WhatIf::withBatch(uint32_t factor) const {
  if (program.batch <= 0)
    return std::optional<double>();
  Plan changed = plan;
  scale(changed, factor);
  return simulate(std::move(changed), nullptr);
}

WhatIf::Answer WhatIf::withSchedule(const partitioner::ScheduleDescriptor &schedule) const {
  if (!isTraining() || plan.numStages() < 2 || !isPlain() || !schedule.splitsBackward || schedule.chunksPerStage > 1 ||
      !schedule.check({plan.numStages(), program.microbatches}))
    return std::optional<double>();
  Plan changed = plan;
  std::vector<ChunkRole> roles(plan.chunks.size());
  for (ChunkId id = 0; id < plan.chunks.size(); ++id) {
    if (plan.chunks[id].program != index || plan.chunks[id].phase != Phase::backward)
      continue;
    Chunk weights = plan.chunks[id];
    auto isOfWeights = [&](TaskId task) { return view.work[task] == Work::weightGradient; };
    std::erase_if(weights.tasks, [&](TaskId task) { return !isOfWeights(task); });
    std::erase_if(changed.chunks[id].tasks, isOfWeights);
    changed.chunks.push_back(std::move(weights));
    roles.push_back({0, true});
  }
  return simulate(std::move(changed), &schedule, roles);
}

WhatIf::Answer WhatIf::withFasterLinks(double factor) const {
  if (view.communications.empty())
    return std::optional<double>();
  partitioner::Cluster cluster = costs.cluster();
  for (partitioner::Link *link : {&cluster.intraNode, &cluster.interNode}) {
    link->bytesPerSecond *= factor;
    link->latencyUs /= factor;
  }
  Result<Predicted> predicted = partitioner::simulateProgram(plan, program, partitioner::CostModel(cluster));
  if (!predicted)
    return predicted.status();
  return std::optional(predicted->stepUs);
}

WhatIf::Answer WhatIf::simulate(Plan changed, const partitioner::ScheduleDescriptor *schedule,
                                const std::vector<ChunkRole> &roles) const {
  if (schedule)
    DG_RETURN_IF_ERROR(partitioner::schedulePlan(changed, {schedule, schedule->chunksPerStage}, roles));
  Result<Predicted> predicted = partitioner::simulateProgram(changed, changed.programs[index], costs);
  if (!predicted)
    return predicted.status();
  return std::optional(predicted->stepUs);
}

bool WhatIf::isTraining() const {
  return std::any_of(plan.chunks.begin(), plan.chunks.end(),
                     [&](const Chunk &chunk) { return chunk.program == index && chunk.phase == Phase::backward; });
}

const partitioner::ScheduleDescriptor *WhatIf::ownSchedule() const {
  return isTraining() ? partitioner::findSchedule(program.schedule) : &partitioner::defaultSchedule();
}

bool WhatIf::isPlain() const {
  std::set<std::tuple<uint32_t, uint32_t, Phase>> seen;
  for (const Chunk &chunk : plan.chunks)
    if (!seen.insert({chunk.program, chunk.stage, chunk.phase}).second)
      return false;
  const partitioner::ScheduleDescriptor *schedule = ownSchedule();
  return schedule && schedule->chunksPerStage == 1 && !schedule->splitsBackward;
}

void WhatIf::scale(Plan &changed, double factor) const {
  int64_t data = plan.mesh.sizeOf(Axis::data);
  const int64_t localRows = divideUp(program.batch, data * program.microbatches);
  std::vector<bool> isFixed = findUpdateInputs(plan, view.work);
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (view.work[id] == Work::weightGradient || view.work[id] == Work::update)
      for (ValueId value : writesOf(startOf(plan, plan.tasks[id])))
        isFixed[value] = true;
  auto grows = [&](ValueId id) {
    const Value &value = plan.values[id];
    // What was cut or received is known by its local shape alone.
    const int64_t rows = value.globalShape == value.shape ? localRows : localRows * data;
    return !isFixed[id] && value.kind != ValueKind::parameter && value.kind != ValueKind::state &&
           value.kind != ValueKind::constant && !value.globalShape.empty() && value.globalShape[0] > 0 &&
           value.globalShape[0] % rows == 0;
  };
  for (const Chunk &chunk : plan.chunks) {
    if (chunk.program != index || (chunk.phase != Phase::forward && chunk.phase != Phase::backward))
      continue;
    for (TaskId id : chunk.tasks) {
      const Task &task = plan.tasks[id];
      double bytes = 0, growing = 0;
      for (const std::vector<ValueId> &list : {readsOf(task), writesOf(task)})
        for (ValueId value : list) {
          bytes += double(plan.values[value].bytes);
          growing += grows(value) ? double(plan.values[value].bytes) : 0;
        }
      if (growing <= 0)
        continue;
      changed.tasks[id].flops *= factor;
      changed.tasks[id].bytes *= (growing * factor + bytes - growing) / bytes;
    }
  }
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (grows(id))
      changed.values[id].bytes = uint64_t(double(plan.values[id].bytes) * factor);
}

void WhatIf::separateUpdates(Plan &changed) const {
  bool hasUpdates = std::any_of(plan.chunks.begin(), plan.chunks.end(), [&](const Chunk &chunk) {
    return chunk.program == index && chunk.phase == Phase::update;
  });
  if (hasUpdates)
    return;
  std::vector<bool> isGradient = findUpdateInputs(plan, view.work);
  auto movesGradient = [&](const Task &task) {
    auto isOf = [&](ValueId value) { return isGradient[value] || plan.values[value].kind == ValueKind::parameter; };
    const std::vector<ValueId> values = valuesOf(task);
    return std::any_of(values.begin(), values.end(), isOf);
  };
  for (ChunkId id = 0; id < plan.chunks.size(); ++id) {
    const Chunk &chunk = plan.chunks[id];
    if (chunk.program != index || chunk.phase != Phase::backward)
      continue;
    Chunk begin{index, chunk.stage, Phase::begin, {}}, backward{index, chunk.stage, Phase::backward, {}},
        update{index, chunk.stage, Phase::update, {}};
    std::set<TaskId> moved;
    std::set<ValueId> made, summed;
    for (TaskId task : chunk.tasks) {
      const Task &own = plan.tasks[task];
      bool isMoved = view.work[task] == Work::update || (isCommunication(own.kind()) && movesGradient(own)) ||
                     (own.as<Finish>() && moved.contains(own.as<Finish>()->task));
      const Task &start = startOf(plan, own);
      (isMoved ? update : backward).tasks.push_back(task);
      if (isMoved)
        moved.insert(task);
      else
        for (ValueId value : writesOf(start))
          made.insert(value);
      for (ValueId value : readsOf(start))
        if (isMoved && made.contains(value))
          summed.insert(value);
    }
    for (ValueId value : summed) {
      auto bytes = double(plan.values[value].bytes);
      Task add, zero;
      add.op = "dg.accumulate";
      add.stage = zero.stage = chunk.stage;
      add.work = Kernel{"", {{value, Access::readWrite}}};
      zero.work = Zero{value};
      add.flops = bytes / double(sizeOf(plan.values[value].dtype));
      add.bytes = 3 * bytes;
      for (TaskId task : backward.tasks)
        if (task < plan.tasks.size()) {
          const std::vector<ValueId> writes = writesOf(startOf(plan, plan.tasks[task]));
          if (std::find(writes.begin(), writes.end(), value) != writes.end())
            add.deps = {task};
        }
      backward.tasks.push_back(TaskId(changed.tasks.size()));
      changed.tasks.push_back(std::move(add));
      begin.tasks.push_back(TaskId(changed.tasks.size()));
      changed.tasks.push_back(std::move(zero));
    }
    changed.chunks[id] = std::move(backward);
    changed.chunks.push_back(std::move(begin));
    changed.chunks.push_back(std::move(update));
  }
}

} // namespace dg::viz
