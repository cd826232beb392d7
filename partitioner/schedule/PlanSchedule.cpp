// SPDX-License-Identifier: Apache-2.0
#include "partitioner/schedule/PlanSchedule.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dg::partitioner {

namespace {

/// The chunks of one program on one stage, by phase, place and whether they are of weight gradients.
using StageChunks = std::map<std::tuple<plan::Phase, uint32_t, bool>, plan::ChunkId>;

std::vector<std::vector<StageChunks>> chunksByProgram(const plan::Plan &plan,
                                                      const std::vector<plan::ChunkRole> &roles) {
  std::vector<std::vector<StageChunks>> all(plan.programs.size(), std::vector<StageChunks>(plan.numStages()));
  for (plan::ChunkId id = 0; id < plan.chunks.size(); ++id) {
    plan::ChunkRole role = id < roles.size() ? roles[id] : plan::ChunkRole();
    all[plan.chunks[id].program][plan.chunks[id].stage][{plan.chunks[id].phase, role.place, role.isWeightPart}] = id;
  }
  return all;
}

/// How many micro-batches apart the values can be that live, each from its first to its last action of `chunks`: so
/// many slots are enough when micro-batch m uses slot m % slots.
uint32_t slotsFor(const std::vector<plan::Action> &actions, const std::set<plan::ChunkId> &chunks) {
  std::map<uint32_t, size_t> last;
  for (size_t i = 0; i < actions.size(); ++i)
    if (chunks.count(actions[i].chunk))
      last[actions[i].microbatch] = i;
  std::set<uint32_t> living;
  uint32_t slots = 1;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!chunks.count(actions[i].chunk))
      continue;
    living.insert(actions[i].microbatch);
    slots = std::max(slots, *living.rbegin() - *living.begin() + 1);
    if (last[actions[i].microbatch] == i)
      living.erase(actions[i].microbatch);
  }
  return slots;
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
    std::map<plan::ValueId, std::set<plan::ChunkId>> chunks;
    std::set<plan::ValueId> sent;
    std::map<std::set<plan::ChunkId>, uint32_t> slots;
    for (const auto &[role, id] : stages[stage])
      for (plan::TaskId task : plan.chunks[id].tasks) {
        for (plan::ValueId value : plan::valuesOf(plan.tasks[task])) {
          chunks[value].insert(id);
          if (plan.tasks[task].as<plan::Send>() || plan.tasks[task].as<plan::Receive>())
            sent.insert(value);
        }
      }
    for (const auto &[id, where] : chunks) {
      plan::Value &value = plan.values[id];
      bool isOfStep = std::any_of(where.begin(), where.end(),
                                  [&](plan::ChunkId chunk) { return plan.chunks[chunk].phase == plan::Phase::update; });
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
        if (outputs.count(id) && !isOfStep)
          value.slots = program.microbatches;
        else if (where.size() > 1 && isOfStep)
          value.slots = schedule.stages[stage].slots;
        else if (where.size() > 1) {
          auto [known, isNew] = slots.try_emplace(where, 0);
          value.slots = known->second = isNew ? slotsFor(program.actions[stage], where) : known->second;
        } else if (sent.count(id))
          value.slots = std::max(2u, std::min(schedule.stages[stage].slots, program.microbatches));
      }
    }
  }
}

} // namespace

Status schedulePlan(plan::Plan &plan, const ScheduleForm &form, const std::vector<plan::ChunkRole> &roles) {
  std::vector<std::vector<StageChunks>> chunks = chunksByProgram(plan, roles);
  for (size_t index = 0; index < plan.programs.size(); ++index) {
    plan::Program &program = plan.programs[index];
    const std::vector<StageChunks> &stages = chunks[index];
    bool isTraining = std::any_of(stages.begin(), stages.end(), [](const StageChunks &own) {
      auto first = own.lower_bound({plan::Phase::backward, 0, false});
      return first != own.end() && std::get<0>(first->first) == plan::Phase::backward;
    });
    const PipelineShape shape{plan.numStages(), program.microbatches, form.chunksPerStage};
    if (isTraining)
      DG_RETURN_IF_ERROR(form.schedule->check(shape));
    Result<Schedule> schedule =
        isTraining ? makeSchedule(*form.schedule, shape) : makeForwardSchedule(shape, form.schedule->isFolded);
    if (!schedule)
      return schedule.status();
    program.schedule = schedule->name;
    program.actions.assign(plan.numStages(), {});
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      auto add = [&](const Pass &pass) {
        auto chunk = stages[stage].find({pass.phase, pass.chunk, pass.part == GradientPart::weight});
        if (chunk != stages[stage].end())
          program.actions[stage].push_back({chunk->second, pass.microbatch});
      };
      add({plan::Phase::begin});
      for (const Pass &pass : schedule->stages[stage].passes)
        add(pass);
      add({plan::Phase::update});
    }
    assignSlots(plan, program, stages, *schedule);
  }
  return Status::ok();
}

} // namespace dg::partitioner
