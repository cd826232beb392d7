// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/TaskTraits.h"
#include "tests/unit/plan/HandTasks.h"
#include "tests/unit/plan/PlanFaults.h"

#include <algorithm>

namespace dg::plan::testing {

namespace {

/// The `place`-th reduction over replicas, and the chunk that has it; noId if there are not so many.
TaskId nthCrossing(Plan &plan, size_t place, Chunk *&chunk) {
  for (Chunk &each : plan.chunks)
    for (TaskId id : each.tasks)
      if (const auto *reduce = plan.tasks[id].as<AllReduce>();
          reduce && reduce->axis == Axis::replica && place-- == 0) {
        chunk = &each;
        return id;
      }
  return noId;
}

TaskId finishOf(const Plan &plan, TaskId started) {
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (const auto *finish = plan.tasks[id].as<Finish>(); finish && finish->task == started)
      return id;
  return noId;
}

/// Takes the reduction out of its chunk; nobody waits for it any more.
void detach(Plan &plan, Chunk &chunk, TaskId start) {
  const TaskId finish = finishOf(plan, start);
  std::erase_if(chunk.tasks, [&](TaskId id) { return id == start || id == finish; });
  for (Task &task : plan.tasks)
    std::erase(task.deps, finish);
  plan.tasks[start].deps.clear();
  plan.tasks[finish].deps = {start};
}

/// The first value of that kind.
ValueId firstOf(const Plan &plan, ValueKind kind) {
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (plan.values[id].kind == kind)
      return id;
  return noId;
}

bool reducedAfterItsUse(Plan &plan, size_t place) {
  Chunk *chunk = nullptr;
  for (size_t next = 0;; ++next) {
    const TaskId start = nthCrossing(plan, next, chunk);
    if (start == noId)
      return false;
    const ValueId sum = plan.tasks[start].as<AllReduce>()->value;
    std::vector<TaskId> users;
    for (TaskId id : chunk->tasks) {
      std::vector<ValueId> read = readsOf(plan.tasks[id]);
      if (plan.tasks[id].as<Kernel>() && std::find(read.begin(), read.end(), sum) != read.end())
        users.push_back(id);
    }
    // What is scattered shares its bytes with others: the verifier of memory would be the first to say so.
    if (users.empty() || plan.values[sum].kind != ValueKind::accumulator || place-- > 0)
      continue;
    detach(plan, *chunk, start);
    plan.tasks[start].deps = users;
    chunk->tasks.insert(chunk->tasks.end(), {start, finishOf(plan, start)});
    for (uint32_t order = 0; Chunk & each : plan.chunks) // the order of collectives is right again
      for (TaskId id : each.tasks)
        if (isCollective(plan.tasks[id].kind()))
          setChannel(plan.tasks[id], order++);
    return true;
  }
}

bool reducedInEachMicrobatch(Plan &plan, size_t place) {
  Chunk *chunk = nullptr;
  const TaskId start = nthCrossing(plan, place, chunk);
  if (start == noId)
    return false;
  const ValueId sum = plan.tasks[start].as<AllReduce>()->value;
  for (Chunk &other : plan.chunks)
    for (TaskId id : other.tasks) {
      std::vector<ValueId> written = writesOf(startOf(plan, plan.tasks[id]));
      if (!isPerMicrobatch(other.phase) || std::find(written.begin(), written.end(), sum) == written.end())
        continue;
      detach(plan, *chunk, start);
      plan.tasks[start].deps = {id};
      other.tasks.insert(other.tasks.end(), {start, finishOf(plan, start)});
      return true;
    }
  return false;
}

bool sumOfEqualValues(Plan &plan, size_t place) {
  Chunk *chunk = nullptr;
  const TaskId known = nthCrossing(plan, place, chunk);
  if (known == noId)
    return false;
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (plan.values[id].kind == ValueKind::parameter && plan.values[id].stage == chunk->stage) {
      Task start = plan.tasks[known], finish = plan.tasks[finishOf(plan, known)];
      start.deps = chunk->tasks;
      start.work = AllReduce{id, Axis::replica, 1000, {}};
      plan.tasks.push_back(start);
      finish.deps = {TaskId(plan.tasks.size() - 1)};
      finish.as<Finish>()->task = finish.deps[0];
      plan.tasks.push_back(finish);
      chunk->tasks.insert(chunk->tasks.end(), {finish.deps[0], finish.deps[0] + 1});
      return true;
    }
  return false;
}

/// Every replica runs every micro-batch, and their sums are added all the same.
bool notDealt(Plan &plan, size_t place) {
  if (place >= plan.programs.size())
    return false;
  plan.programs[place].dealt.clear();
  return true;
}

bool microbatchOfTwoReplicas(Plan &plan, size_t place) {
  if (place >= plan.programs.size())
    return false;
  ++plan.programs[place].dealt.back();
  return true;
}

bool microbatchOfNoReplica(Plan &plan, size_t place) {
  if (place >= plan.programs.size() || plan.programs[place].dealt.front() < 2)
    return false;
  --plan.programs[place].dealt.front();
  return true;
}

bool replicaWithoutMicrobatches(Plan &plan, size_t place) {
  if (place >= plan.programs.size())
    return false;
  std::vector<uint32_t> &dealt = plan.programs[place].dealt;
  dealt.front() += std::exchange(dealt.back(), 0u);
  return true;
}

bool moreReplicasThanShares(Plan &plan, size_t place) {
  ++plan.mesh.replicas;
  return place == 0;
}

bool otherCollectiveOverReplicas(Plan &plan, size_t place) {
  for (Task &task : plan.tasks)
    if (axisOf(task) && !task.as<AllReduce>() && place-- == 0) {
      setAxis(task, Axis::replica);
      return true;
    }
  return false;
}

bool valueCutOverReplicas(Plan &plan, size_t place) {
  const ValueId value = firstOf(plan, ValueKind::parameter);
  if (place > 0 || value == noId)
    return false;
  plan.values[value].sharding.front() = Axis::replica;
  return true;
}

} // namespace

const std::vector<FaultKind> &replicaFaultKinds() {
  static const std::vector<FaultKind> kinds = [] {
    std::vector<FaultKind> own = {
        {"sum reduced over replicas after its use", reducedAfterItsUse, "expected a reduction"},
        {"sum reduced over replicas in each micro-batch", reducedInEachMicrobatch, "expected an update"},
        {"sum over replicas of what they hold alike", sumOfEqualValues, "which hold the same"},
        {"micro-batches dealt to every replica", notDealt, "which hold the same"},
        {"micro-batch of two replicas", microbatchOfTwoReplicas, "dealt"},
        {"micro-batch of no replica", microbatchOfNoReplica, "dealt"},
        {"replica without micro-batches", replicaWithoutMicrobatches, "dealt"},
        {"more replicas than shares", moreReplicasThanShares, "dealt"},
        {"gather, scatter or block over replicas", otherCollectiveOverReplicas, "found replica"},
        {"value cut over replicas", valueCutOverReplicas, "found replica"},
    };
    // And all that can go wrong with any reduction.
    for (const FaultKind &kind : faultKinds())
      if (std::string_view(kind.name).find("reduction") != std::string_view::npos)
        own.push_back({kind.name, kind.plant}); // the order of the other axis may be what is wrong first
    return own;
  }();
  return kinds;
}

} // namespace dg::plan::testing
