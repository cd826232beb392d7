// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/verify/DeviceVerifier.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TaskTraits.h"

namespace dg::plan {

namespace {

/// Only kernels reach memory by themselves. Copies are made by the device, which reaches all; what the transport cannot
/// reach, the executor stages.
bool canReach(const Task &task, DeviceKind device, MemorySpace space) {
  return device == DeviceKind::cpu || space != MemorySpace::host || !task.as<Kernel>();
}

} // namespace

Status verifyDevices(const Plan &plan) {
  for (TaskId id = 0; id < plan.tasks.size(); ++id) {
    const Task &task = plan.tasks[id];
    const DeviceKind device = plan.memory[task.stage].device;
    for (ValueId value : valuesOf(task))
      if (!canReach(task, device, plan.values[value].space))
        return Status::error(ErrorKind::badInput,
                             "plan: ops[{}] ('{}') is a kernel on stage {} ({}) and touches values[{}] ('{}') in {} "
                             "memory; expected device or pinned, and a copy before it",
                             id, task.name, task.stage, nameOf(device), value, plan.values[value].name,
                             nameOf(plan.values[value].space));
  }
  for (ChunkId id = 0; id < plan.chunks.size(); ++id) {
    const Program &program = plan.programs[plan.chunks[id].program];
    if (program.role == Role::server && isPerMicrobatch(plan.chunks[id].phase))
      return Status::error(
          ErrorKind::badInput,
          "plan: chunk {}: a {} chunk in program '{}' of servers, which see no micro-batches; expected "
          "begin or update",
          id, nameOf(plan.chunks[id].phase), nameOf(program.kind));
  }
  return Status::ok();
}

} // namespace dg::plan
