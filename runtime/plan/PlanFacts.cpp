// SPDX-License-Identifier: Apache-2.0
// Gathers the facts, and checks the structure that they rest on.
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dg::plan {

namespace {

Status wrongTask(const Plan &plan, TaskId task, std::string_view what) {
  return Status::error(ErrorKind::badInput, "plan: ops[{}] ('{}'): {}", task, plan.tasks[task].name, what);
}

Status placeTasks(const Plan &plan, PlanFacts &facts) {
  facts.chunkOf.assign(plan.tasks.size(), noId);
  facts.positionOf.assign(plan.tasks.size(), 0);
  for (ChunkId chunk = 0; chunk < plan.chunks.size(); ++chunk)
    for (uint32_t position = 0; position < plan.chunks[chunk].tasks.size(); ++position) {
      TaskId task = plan.chunks[chunk].tasks[position];
      if (facts.chunkOf[task] != noId)
        return wrongTask(
            plan, task,
            fmt::format("is in chunk {} and in chunk {}; an op runs in exactly one", facts.chunkOf[task], chunk));
      if (plan.tasks[task].stage != plan.chunks[chunk].stage)
        return wrongTask(plan, task,
                         fmt::format("belongs to stage {}, its chunk {} to stage {}", plan.tasks[task].stage, chunk,
                                     plan.chunks[chunk].stage));
      facts.chunkOf[task] = chunk;
      facts.positionOf[task] = position;
    }
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    if (facts.chunkOf[task] == noId)
      return wrongTask(plan, task, "is in no chunk, so it would never run");
  return Status::ok();
}

Status checkDependencies(const Plan &plan, const PlanFacts &facts) {
  auto isEarlier = [&](TaskId first, TaskId second) {
    return facts.chunkOf[first] == facts.chunkOf[second] && facts.positionOf[first] < facts.positionOf[second];
  };
  for (TaskId task = 0; task < plan.tasks.size(); ++task) {
    for (TaskId dependency : plan.tasks[task].deps)
      if (!isEarlier(dependency, task))
        return wrongTask(plan, task,
                         fmt::format("depends on ops[{}] ('{}'), which is not earlier in the same chunk", dependency,
                                     plan.tasks[dependency].name));
    const Finish *finish = plan.tasks[task].as<Finish>();
    if (finish && !isEarlier(finish->task, task))
      return wrongTask(plan, task,
                       fmt::format("finishes ops[{}], which is not earlier in the same chunk", finish->task));
  }
  return Status::ok();
}

Status matchFinishes(const Plan &plan, PlanFacts &facts) {
  facts.finishOf.assign(plan.tasks.size(), noId);
  for (TaskId task = 0; task < plan.tasks.size(); ++task) {
    const Finish *finishes = plan.tasks[task].as<Finish>();
    if (!finishes)
      continue;
    TaskId &finish = facts.finishOf[finishes->task];
    if (finish != noId)
      return wrongTask(plan, task, fmt::format("finishes what ops[{}] finishes already", finish));
    finish = task;
  }
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    if (needsFinish(plan.tasks[task].kind()) && facts.finishOf[task] == noId)
      return wrongTask(plan, task, "starts a communication that no finish op of its chunk completes");
  return Status::ok();
}

void sortUnique(std::vector<ValueId> &values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// Everything but loops. A communication has its accesses from its start to its finish.
TaskAccess accessOf(const Task &task) {
  TaskAccess access{readsOf(task), writesOf(task), {}};
  sortUnique(access.reads);
  sortUnique(access.writes);
  access.exposed = access.reads;
  return access;
}

/// Keeps the last occurrence of each value, in order.
void keepLast(std::vector<ValueId> &values) {
  std::set<ValueId> seen;
  std::reverse(values.begin(), values.end());
  std::erase_if(values, [&](ValueId value) { return !seen.insert(value).second; });
  std::reverse(values.begin(), values.end());
}

/// Adds the body's accesses to a loop task; its writes stay in the body's order. Nesting is at most 64 deep
/// (checkIndices).
void addBody(const Plan &plan, PlanFacts &facts, TaskId loop) {
  TaskAccess &access = facts.access[loop];
  std::set<ValueId> written;
  for (TaskId inner : plan.chunks[plan.tasks[loop].as<Loop>()->body].tasks) {
    if (plan.tasks[inner].as<Loop>())
      addBody(plan, facts, inner);
    const TaskAccess &part = facts.access[inner];
    for (ValueId value : part.exposed)
      if (!written.contains(value))
        access.exposed.push_back(value);
    access.reads.insert(access.reads.end(), part.reads.begin(), part.reads.end());
    access.writes.insert(access.writes.end(), part.writes.begin(), part.writes.end());
    written.insert(part.writes.begin(), part.writes.end());
  }
  sortUnique(access.reads);
  sortUnique(access.exposed);
  keepLast(access.writes);
}

Status gatherAccesses(const Plan &plan, PlanFacts &facts) {
  for (const Task &task : plan.tasks)
    facts.access.push_back(accessOf(task));
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    if (plan.tasks[task].as<Loop>() && !facts.isBody[facts.chunkOf[task]])
      addBody(plan, facts, task);
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    for (const auto *list : {&facts.access[task].reads, &facts.access[task].writes})
      for (ValueId value : *list)
        if (plan.values[value].stage != plan.tasks[task].stage)
          return wrongTask(plan, task,
                           fmt::format("runs on stage {} but touches values[{}] ('{}') of stage {}",
                                       plan.tasks[task].stage, value, plan.values[value].name,
                                       plan.values[value].stage));
  return Status::ok();
}

/// Empty values are buffers of their own: they share no byte with anything.
void groupBuffers(const Plan &plan, PlanFacts &facts) {
  std::map<std::tuple<uint32_t, MemorySpace, uint64_t, uint64_t, uint32_t, uint64_t, uint32_t>, uint32_t> known;
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const Value &value = plan.values[id];
    // Nothing is computed in place of what the runtime feeds, and empty values share nothing.
    bool mayShare = value.bytes > 0 && value.kind != ValueKind::input;
    std::tuple key(value.stage, value.space, value.offset, value.bytes, value.slots, value.slots > 1 ? value.stride : 0,
                   mayShare ? noId : id);
    facts.bufferOf.push_back(known.emplace(key, uint32_t(known.size())).first->second);
  }
}

} // namespace

bool isPersistent(ValueKind kind) {
  return kind == ValueKind::parameter || kind == ValueKind::state || kind == ValueKind::constant;
}

Result<PlanFacts> gatherFacts(const Plan &plan) {
  PlanFacts facts;
  DG_RETURN_IF_ERROR(placeTasks(plan, facts));
  DG_RETURN_IF_ERROR(checkDependencies(plan, facts));
  DG_RETURN_IF_ERROR(matchFinishes(plan, facts));
  facts.isBody.assign(plan.chunks.size(), false);
  for (const Task &task : plan.tasks)
    if (const Loop *loop = task.as<Loop>())
      facts.isBody[loop->body] = true;
  DG_RETURN_IF_ERROR(gatherAccesses(plan, facts));
  groupBuffers(plan, facts);
  return facts;
}

ProgramUse gatherUse(const Plan &plan, const PlanFacts &facts, const Program &program, uint32_t stage) {
  ProgramUse use;
  use.written.assign(plan.values.size(), false);
  use.touched = use.crosses = use.written;
  std::vector<bool> seen(plan.chunks.size(), false);
  for (const Action &action : program.actions[stage])
    if (!seen[action.chunk]) {
      seen[action.chunk] = true;
      use.chunks.push_back(action.chunk);
    }
  std::vector<ChunkId> firstChunk(plan.values.size(), noId);
  for (ChunkId chunk : use.chunks)
    for (TaskId task : plan.chunks[chunk].tasks) {
      for (const auto *list : {&facts.access[task].reads, &facts.access[task].writes})
        for (ValueId value : *list) {
          use.touched[value] = true;
          if (firstChunk[value] == noId)
            firstChunk[value] = chunk;
          if (firstChunk[value] != chunk)
            use.crosses[value] = true;
        }
      for (ValueId value : facts.access[task].writes)
        use.written[value] = true;
    }
  for (const auto *ports : {&program.inputs, &program.outputs})
    for (const Port &port : *ports)
      for (ValueId value : port.values)
        if (plan.values[value].stage == stage)
          use.touched[value] = use.crosses[value] = true;
  return use;
}

} // namespace dg::plan
