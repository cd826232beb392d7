// SPDX-License-Identifier: Apache-2.0
#include "partitioner/predict/Traffic.h"

#include "runtime/plan/TaskTraits.h"

namespace dg::partitioner {

using plan::TaskKind;

static void add(Traffic &sum, const plan::Plan &plan, const plan::Task &task) {
  const double bytes = double(movedBytes(plan, task));
  if (task.kind() == TaskKind::send)
    sum.pipeBytes += bytes;
  if (!isCollective(task.kind()))
    return;
  const plan::Axis axis = *axisOf(task);
  const double ranks = double(plan.mesh.sizeOf(axis));
  (axis == plan::Axis::tensor ? sum.tensorBytes : sum.dataBytes) +=
      (task.kind() == TaskKind::allReduce ? 2 : 1) * bytes * (ranks - 1) / ranks;
}

Traffic trafficOf(const plan::Plan &plan, const plan::Program &program) {
  std::vector<Traffic> chunks(plan.chunks.size());
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk)
    for (plan::TaskId task : plan.chunks[chunk].tasks)
      add(chunks[chunk], plan, plan.tasks[task]);
  Traffic most;
  for (const std::vector<plan::Action> &actions : program.actions) {
    Traffic stage;
    for (const plan::Action &action : actions) {
      stage.tensorBytes += chunks[action.chunk].tensorBytes;
      stage.dataBytes += chunks[action.chunk].dataBytes;
      stage.pipeBytes += chunks[action.chunk].pipeBytes;
    }
    if (stage.totalBytes() > most.totalBytes())
      most = stage;
  }
  return most;
}

} // namespace dg::partitioner
