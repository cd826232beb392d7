// SPDX-License-Identifier: Apache-2.0
#include "partitioner/PlanSchedule.h"

#include "partitioner/Schedule.h"

#include <algorithm>
#include <map>
#include <set>

namespace dg::partitioner {

namespace {

/// The chunks of one program on one stage, by phase.
using StageChunks = std::map<plan::Phase, plan::ChunkId>;

std::vector<std::vector<StageChunks>> chunksByProgram(const plan::Plan &plan) {
  std::vector<std::vector<StageChunks>> all(plan.programs.size(), std::vector<StageChunks>(plan.numStages()));
  for (plan::ChunkId id = 0; id < plan.chunks.size(); ++id)
    all[plan.chunks[id].program][plan.chunks[id].stage][plan.chunks[id].phase] = id;
  return all;
}

/// Values that live from one chunk to another of the same micro-batch need a slot for each micro-batch in flight.
void assignSlots(plan::Plan &plan, const plan::Program &program, const std::vector<StageChunks> &stages,
                 const Schedule &schedule) {
  if (program.microbatches == 1)
    return;
  std::set<plan::ValueId> outputs;
  for (const plan::Port &port : program.outputs)
    outputs.insert(port.values.begin(), port.values.end());
  for (uint32_t stage = 0; stage < stages.size(); ++stage) {
    std::map<plan::ValueId, std::set<plan::Phase>> phases;
    std::set<plan::ValueId> sent;
    for (const auto &[phase, id] : stages[stage])
      for (plan::TaskId task : plan.chunks[id].tasks) {
        for (plan::ValueId value : plan.tasks[task].reads)
          phases[value].insert(phase);
        for (plan::ValueId value : plan.tasks[task].writes)
          phases[value].insert(phase);
        if (plan.tasks[task].kind == plan::TaskKind::send || plan.tasks[task].kind == plan::TaskKind::receive)
          sent.insert(plan.tasks[task].buffers[0]);
      }
    for (const auto &[id, where] : phases) {
      plan::Value &value = plan.values[id];
      switch (value.kind) {
      case plan::ValueKind::parameter:
      case plan::ValueKind::state:
      case plan::ValueKind::constant:
      case plan::ValueKind::accumulator:
        break;
      case plan::ValueKind::input:
        value.slots = program.microbatches;
        break;
      default:
        // A result of the update is one for the step; any other is one for each micro-batch.
        if (outputs.count(id) && !where.count(plan::Phase::update))
          value.slots = program.microbatches;
        else if (where.size() > 1)
          value.slots = schedule.stages[stage].slots;
        else if (sent.count(id))
          value.slots = std::max(2u, std::min(schedule.stages[stage].slots, program.microbatches));
      }
    }
  }
}

} // namespace

Status schedulePlan(plan::Plan &plan, const std::string &name) {
  DG_RETURN_IF_ERROR(checkScheduleName(name));
  std::vector<std::vector<StageChunks>> chunks = chunksByProgram(plan);
  for (size_t index = 0; index < plan.programs.size(); ++index) {
    plan::Program &program = plan.programs[index];
    const std::vector<StageChunks> &stages = chunks[index];
    bool isTraining = std::any_of(stages.begin(), stages.end(),
                                  [](const StageChunks &own) { return own.count(plan::Phase::backward); });
    Result<Schedule> schedule = isTraining ? makeSchedule(name, plan.numStages(), program.microbatches)
                                           : makeForwardSchedule(plan.numStages(), program.microbatches);
    if (!schedule)
      return schedule.status();
    program.schedule = schedule->name;
    program.actions.assign(plan.numStages(), {});
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      auto add = [&](plan::Phase phase, uint32_t microbatch) {
        auto chunk = stages[stage].find(phase);
        if (chunk != stages[stage].end())
          program.actions[stage].push_back({chunk->second, microbatch});
      };
      add(plan::Phase::begin, 0);
      for (const Pass &pass : schedule->stages[stage].passes)
        add(pass.phase, pass.microbatch);
      add(plan::Phase::update, 0);
    }
    assignSlots(plan, program, stages, *schedule);
  }
  return Status::ok();
}

} // namespace dg::partitioner
