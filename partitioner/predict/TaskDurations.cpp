// SPDX-License-Identifier: Apache-2.0
#include "partitioner/predict/TaskDurations.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <vector>

namespace dg::partitioner {

using plan::Task;
using plan::TaskId;
using plan::TaskKind;

Result<TaskDurations::Cost> TaskDurations::of(const Task &task, size_t depth) {
  if (isCollective(task.kind()))
    return Cost{0, collectiveUs(task)};
  switch (task.kind()) {
  case TaskKind::send:
    return Cost{0, sendUs(task)};
  case TaskKind::receive:
  case TaskKind::finish:
    return Cost{};
  case TaskKind::loop:
    return loopCost(task, *task.as<plan::Loop>(), depth);
  default:
    return Cost{costs.kernelUs(task.flops, bytesOf(task), typeOf(task), task.op), 0};
  }
}

double TaskDurations::sendUs(const Task &send) {
  return double(movedBytes(plan, send)) / linkBetweenStages(send.stage, peerStageOf(send)).bytesPerSecond * 1e6;
}

const Link &TaskDurations::linkBetweenStages(uint32_t from, uint32_t to) {
  auto [found, isNew] = links.try_emplace({from, to}, nullptr);
  if (isNew)
    found->second = &costs.linkBetweenStages(from, to, plan.mesh.ranksOfStage());
  return *found->second;
}

bool TaskDurations::takesCores(const Task &task) {
  if (costs.cluster().coresPerNode == 0)
    return false;
  if (const plan::Send *send = task.as<plan::Send>())
    return &linkBetweenStages(task.stage, send->peerStage) == &costs.cluster().intraNode;
  return isCollective(task.kind()) && groupOf(task).numNodes == 1;
}

double TaskDurations::collectiveUs(const Task &task) {
  Group group = groupOf(task);
  double bytes = double(movedBytes(plan, task));
  return costs.collectiveUs(task.kind(), costs.bestAlgorithm(task.kind(), group, bytes), group, bytes);
}

/// The group of the stage that stands on the most nodes: the others wait for it.
Group TaskDurations::groupOf(const Task &task) {
  const plan::Axis axis = *axisOf(task);
  auto [found, isNew] = groups.try_emplace({task.stage, axis}, Group{});
  if (isNew) {
    const int64_t ranksOfStage = plan.mesh.ranksOfStage();
    for (int64_t i = 0; i < ranksOfStage; ++i) {
      int64_t rank = task.stage * ranksOfStage + i;
      std::vector<int64_t> ranks = plan.mesh.groupOf(rank, axis);
      if (ranks.empty() || ranks.front() != rank)
        continue;
      if (Group group = costs.groupOf(ranks); group.numNodes >= found->second.numNodes)
        found->second = group;
    }
  }
  return found->second;
}

double TaskDurations::bytesOf(const Task &task) const {
  if (task.bytes > 0 || task.as<plan::Kernel>())
    return task.bytes;
  std::vector<plan::ValueId> values = valuesOf(task);
  double bytes = double(plan.values[values.front()].bytes); // zero writes it; copy and slice read and write the smaller
  return values.size() == 1 ? bytes : 2 * std::min(bytes, double(plan.values[values.back()].bytes));
}

/// Factors of 16 bits are multiplied as such, whatever the type of their sum.
plan::DType TaskDurations::typeOf(const Task &task) const {
  plan::DType type = plan::DType::f32;
  for (plan::ValueId value : valuesOf(task))
    if (plan::DType own = plan.values[value].dtype; own == plan::DType::bf16 || own == plan::DType::f16)
      type = own;
  return type;
}

Result<TaskDurations::Cost> TaskDurations::loopCost(const Task &task, const plan::Loop &loop, size_t depth) {
  if (depth > plan.chunks.size())
    return Status::error(ErrorKind::badInput, "plan: loop '{}' of stage {} contains itself; compile the job again",
                         task.name, task.stage);
  Cost total;
  for (TaskId id : plan.chunks[loop.body].tasks) {
    const Task &inner = plan.tasks[id];
    if (inner.as<plan::Send>() || inner.as<plan::Receive>())
      return Status::error(ErrorKind::badInput,
                           "plan: task '{}' sends or receives inside loop '{}'; only chunks may do that", inner.name,
                           task.name);
    Result<Cost> cost = of(inner, depth + 1);
    if (!cost)
      return cost.status();
    total.computeUs += loop.trips * cost->computeUs;
    total.commUs += loop.trips * cost->commUs;
  }
  return total;
}

} // namespace dg::partitioner
