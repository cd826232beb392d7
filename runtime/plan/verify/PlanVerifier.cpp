// SPDX-License-Identifier: Apache-2.0
// The plan verifier: runs on every compile, before anything else does. This file checks what concerns the plan as a
// whole and calls the parts: structure (PlanFacts), devices, memory, channels, schedule, replicas.
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/PlanIndices.h"
#include "runtime/plan/verify/ChannelVerifier.h"
#include "runtime/plan/verify/DeviceVerifier.h"
#include "runtime/plan/verify/MemoryVerifier.h"
#include "runtime/plan/verify/ReplicaVerifier.h"
#include "runtime/plan/verify/ScheduleVerifier.h"

#include <cmath>
#include <set>

namespace dg::plan {

namespace {

/// JSON has no infinity: a number that is none could be written but not read.
Status checkNumbers(const Plan &plan) {
  const Predicted &p = plan.predicted;
  const Search &s = plan.search;
  for (double number : {p.stepUs, p.computeUs, p.commUs, p.bubble, s.lowerBoundUs, s.gap, s.seconds})
    if (!std::isfinite(number))
      return Status::error(ErrorKind::badInput, "plan: a predicted time or search figure is not a finite number");
  for (const Alternative &alternative : s.alternatives)
    if (!std::isfinite(alternative.stepUs))
      return Status::error(ErrorKind::badInput, "plan: alternative '{}': its time is not a finite number",
                           alternative.description);
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    if (!std::isfinite(plan.tasks[task].flops) || !std::isfinite(plan.tasks[task].bytes))
      return Status::error(ErrorKind::badInput, "plan: ops[{}] ('{}'): flops or bytes are not finite numbers", task,
                           plan.tasks[task].name);
  for (ValueId value = 0; value < plan.values.size(); ++value)
    if (!std::isfinite(plan.values[value].init.value))
      return Status::error(ErrorKind::badInput, "plan: values[{}] ('{}'): its initial value is not a finite number",
                           value, plan.values[value].name);
  return Status::ok();
}

Status checkTotals(const Plan &plan) {
  if (plan.version != planVersion)
    return Status::error(ErrorKind::badInput, "plan: version {}, expected {}", plan.version, planVersion);
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
    const StageMemory &memory = plan.memory[stage];
    if (memory.persistentBytes > memory.arenaBytes)
      return Status::error(ErrorKind::badInput, "plan: stage {}: {} persistent bytes in an arena of {}", stage,
                           memory.persistentBytes, memory.arenaBytes);
    if (!plan.predicted.peakBytes.empty() && plan.predicted.peakBytes[stage] != memory.arenaBytes)
      return Status::error(ErrorKind::badInput, "plan: stage {}: predicted peak of {} bytes, but the arena has {}",
                           stage, plan.predicted.peakBytes[stage], memory.arenaBytes);
  }
  return Status::ok();
}

/// Checkpoints find parameters and state by name.
Status checkPersistentNames(const Plan &plan) {
  std::set<std::pair<uint32_t, std::string>> seen;
  for (const Value &value : plan.values)
    if (isPersistent(value.kind) && !seen.insert({value.stage, value.name}).second)
      return Status::error(ErrorKind::badInput, "plan: stage {} has two persistent values named '{}'", value.stage,
                           value.name);
  return Status::ok();
}

Status checkChunksRun(const Plan &plan, const PlanFacts &facts) {
  std::vector<bool> runs(plan.chunks.size(), false);
  for (const Program &program : plan.programs)
    for (const std::vector<Action> &actions : program.actions)
      for (const Action &action : actions)
        runs[action.chunk] = true;
  for (ChunkId chunk = 0; chunk < plan.chunks.size(); ++chunk) {
    if (runs[chunk] == facts.isBody[chunk])
      return Status::error(ErrorKind::badInput, "plan: chunk {} ({} of stage {}) {}", chunk,
                           nameOf(plan.chunks[chunk].phase), plan.chunks[chunk].stage,
                           runs[chunk] ? "is both scheduled and the body of a loop" : "is never run");
    if (!facts.isBody[chunk])
      continue;
    for (TaskId task : plan.chunks[chunk].tasks)
      if (plan.tasks[task].as<Send>() || plan.tasks[task].as<Receive>())
        return Status::error(ErrorKind::badInput, "plan: ops[{}] ('{}'): a send or receive inside a loop", task,
                             plan.tasks[task].name);
  }
  return Status::ok();
}

} // namespace

Status verify(const Plan &plan) {
  DG_RETURN_IF_ERROR(checkIndices(plan));
  DG_RETURN_IF_ERROR(checkNumbers(plan));
  DG_RETURN_IF_ERROR(checkTotals(plan));
  DG_RETURN_IF_ERROR(checkPersistentNames(plan));
  Result<PlanFacts> facts = gatherFacts(plan);
  if (!facts)
    return facts.status();
  DG_RETURN_IF_ERROR(checkChunksRun(plan, *facts));
  DG_RETURN_IF_ERROR(verifyDevices(plan));
  DG_RETURN_IF_ERROR(verifyPlaces(plan, *facts));
  for (const Program &program : plan.programs) {
    DG_RETURN_IF_ERROR(verifyActions(plan, *facts, program));
    DG_RETURN_IF_ERROR(verifyChannels(plan, *facts, program));
    DG_RETURN_IF_ERROR(verifyProgress(plan, *facts, program));
    DG_RETURN_IF_ERROR(verifyLifetimes(plan, *facts, program));
    DG_RETURN_IF_ERROR(verifyReplicas(plan, *facts, program));
  }
  return Status::ok();
}

} // namespace dg::plan
