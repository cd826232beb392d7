// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/plan/PlanFaults.h"
#include "tests/unit/plan/HandTasks.h"

#include <algorithm>
#include <functional>
#include <set>

namespace dg::plan::testing {

namespace {

//===- Places ----------------------------------------------------------------------------------------------------===//

/// The `place`-th task, or value, for which `wanted` holds; noId if there are not so many.
TaskId nthTask(const Plan &plan, size_t place, const std::function<bool(TaskId, const Task &)> &wanted) {
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (wanted(id, plan.tasks[id]) && place-- == 0)
      return id;
  return noId;
}

TaskId nthOfKind(const Plan &plan, size_t place, TaskKind kind) {
  return nthTask(plan, place, [&](TaskId, const Task &task) { return task.kind() == kind; });
}

ValueId nthValue(const Plan &plan, size_t place, const std::function<bool(const Value &)> &wanted) {
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (wanted(plan.values[id]) && place-- == 0)
      return id;
  return noId;
}

bool isPersistent(const Value &value) {
  return value.kind == ValueKind::parameter || value.kind == ValueKind::state || value.kind == ValueKind::constant;
}

bool holds(const std::vector<uint32_t> &list, uint32_t id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

Chunk &chunkOf(Plan &plan, TaskId task) {
  return *std::find_if(plan.chunks.begin(), plan.chunks.end(),
                       [&](const Chunk &chunk) { return holds(chunk.tasks, task); });
}

TaskId finishOf(const Plan &plan, TaskId started) {
  return nthTask(plan, 0, [&](TaskId, const Task &task) {
    const Finish *finish = task.as<Finish>();
    return finish && finish->task == started;
  });
}

/// Whether an op before it in its chunk writes what the task reads.
bool readsOfItsChunk(Plan &plan, TaskId id) {
  for (TaskId before : chunkOf(plan, id).tasks) {
    if (before == id)
      return false;
    for (ValueId written : writesOf(startOf(plan, plan.tasks[before])))
      if (holds(readsOf(plan.tasks[id]), written) && !isPersistent(plan.values[written]))
        return true;
  }
  return false;
}

//===- Changes ---------------------------------------------------------------------------------------------------===//

/// Takes tasks out of the plan as if the compiler had never made them: who waited for one waits for what it waited for.
void removeTasks(Plan &plan, const std::set<TaskId> &gone) {
  for (TaskId id : gone)
    for (Task &task : plan.tasks)
      if (holds(task.deps, id)) {
        task.deps.insert(task.deps.end(), plan.tasks[id].deps.begin(), plan.tasks[id].deps.end());
        std::erase(task.deps, id);
      }
  std::vector<TaskId> newIds(plan.tasks.size(), noId);
  std::vector<Task> kept;
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (!gone.contains(id)) {
      newIds[id] = TaskId(kept.size());
      kept.push_back(std::move(plan.tasks[id]));
    }
  plan.tasks = std::move(kept);
  auto renumber = [&](std::vector<TaskId> &list) {
    std::erase_if(list, [&](TaskId id) { return gone.contains(id); });
    for (TaskId &id : list)
      id = newIds[id];
  };
  for (Task &task : plan.tasks) {
    renumber(task.deps);
    if (Finish *finish = task.as<Finish>())
      finish->task = newIds[finish->task];
  }
  for (Chunk &chunk : plan.chunks)
    renumber(chunk.tasks);
}

/// Puts a new task behind `before` in its chunk.
TaskId insertAfter(Plan &plan, TaskId before, Task task) {
  TaskId id = TaskId(plan.tasks.size());
  std::vector<TaskId> &list = chunkOf(plan, before).tasks;
  list.insert(std::find(list.begin(), list.end(), before) + 1, id);
  plan.tasks.push_back(std::move(task));
  return id;
}

Action *findAction(Plan &plan, size_t place, Phase phase, size_t &stage, size_t &index) {
  for (Program &program : plan.programs)
    for (stage = 0; stage < program.actions.size(); ++stage)
      for (index = 0; index < program.actions[stage].size(); ++index)
        if (plan.chunks[program.actions[stage][index].chunk].phase == phase && place-- == 0)
          return &program.actions[stage][index];
  return nullptr;
}

std::vector<Action> &listOf(Plan &plan, const Action *action) {
  for (Program &program : plan.programs)
    for (std::vector<Action> &list : program.actions)
      if (!list.empty() && action >= list.data() && action < list.data() + list.size())
        return list;
  return plan.programs[0].actions[0];
}

//===- Reductions ------------------------------------------------------------------------------------------------===//

bool missingReduction(Plan &plan, size_t place) {
  TaskId reduce = nthOfKind(plan, place, TaskKind::allReduce);
  if (reduce == noId)
    return false;
  removeTasks(plan, {reduce, finishOf(plan, reduce)});
  return true;
}

bool doubleReduction(Plan &plan, size_t place) {
  TaskId reduce = nthOfKind(plan, place, TaskKind::allReduce);
  if (reduce == noId)
    return false;
  TaskId finish = finishOf(plan, reduce);
  Task again = plan.tasks[reduce], end = plan.tasks[finish];
  again.deps = {finish};
  TaskId second = insertAfter(plan, finish, again);
  end.as<Finish>()->task = second;
  end.deps = {second};
  TaskId secondEnd = insertAfter(plan, second, end);
  for (TaskId id = 0; id < second; ++id)
    if (holds(plan.tasks[id].deps, finish))
      plan.tasks[id].deps.push_back(secondEnd);
  uint32_t position = 0; // in the order of the collectives, which has one more
  for (const Chunk &chunk : plan.chunks)
    for (TaskId id : chunk.tasks)
      if (isCollective(plan.tasks[id].kind()))
        setChannel(plan.tasks[id], position++);
  return true;
}

bool wrongAxis(Plan &plan, size_t place) {
  TaskId reduce = nthOfKind(plan, place, TaskKind::allReduce);
  if (reduce == noId)
    return false;
  Axis &axis = plan.tasks[reduce].as<AllReduce>()->axis;
  axis = axis == Axis::data ? Axis::tensor : Axis::data;
  return true;
}

bool unfinishedReduction(Plan &plan, size_t place) {
  TaskId reduce = nthOfKind(plan, place, TaskKind::allReduce);
  if (reduce == noId)
    return false;
  removeTasks(plan, {finishOf(plan, reduce)});
  return true;
}

bool readBeforeItsFinish(Plan &plan, size_t place) {
  TaskId reader = nthTask(plan, place, [&](TaskId, const Task &task) {
    return task.as<Kernel>() && std::any_of(task.deps.begin(), task.deps.end(), [&](TaskId dep) {
             const Task &finish = plan.tasks[dep];
             return finish.as<Finish>() && holds(readsOf(task), writesOf(startOf(plan, finish)).at(0));
           });
  });
  if (reader == noId)
    return false;
  // What the reader waits for may itself wait for the same communication.
  const std::vector<TaskId> waits = plan.tasks[reader].deps;
  std::vector<TaskId> before = {reader};
  for (size_t i = 0; i < before.size(); ++i)
    for (TaskId &dep : plan.tasks[before[i]].deps)
      if (const Finish *finish = plan.tasks[dep].as<Finish>(); finish && holds(waits, dep))
        dep = finish->task;
      else if (!holds(before, dep))
        before.push_back(dep);
  return true;
}

bool collectivesOutOfOrder(Plan &plan, size_t place) {
  for (const Chunk &chunk : plan.chunks)
    for (size_t i = 0; i < chunk.tasks.size(); ++i)
      for (size_t j = i + 1; j < chunk.tasks.size(); ++j) {
        AllReduce *first = plan.tasks[chunk.tasks[i]].as<AllReduce>(),
                  *second = plan.tasks[chunk.tasks[j]].as<AllReduce>();
        if (first && second && first->axis == second->axis && place-- == 0) {
          std::swap(first->order, second->order);
          return true;
        }
      }
  return false;
}

bool unknownAlgorithm(Plan &plan, size_t place) {
  TaskId reduce = nthOfKind(plan, place, TaskKind::allReduce);
  if (reduce == noId)
    return false;
  plan.tasks[reduce].as<AllReduce>()->algorithm = {Bracketing::Kind::twoLevel, 0};
  return true;
}

bool missingAccumulation(Plan &plan, size_t place) {
  TaskId task = nthTask(plan, place, [&](TaskId, const Task &task) {
    std::vector<ValueId> writes = writesOf(task);
    return task.as<Kernel>() && writes.size() == 1 && plan.values[writes[0]].kind == ValueKind::accumulator;
  });
  if (task == noId)
    return false;
  removeTasks(plan, {task});
  return true;
}

bool sumNotZeroed(Plan &plan, size_t place) {
  TaskId task = nthTask(plan, place, [&](TaskId, const Task &task) {
    return task.as<Zero>() && plan.values[task.as<Zero>()->value].kind == ValueKind::accumulator;
  });
  if (task == noId)
    return false;
  removeTasks(plan, {task});
  return true;
}

//===- Messages --------------------------------------------------------------------------------------------------===//

bool missingSend(Plan &plan, size_t place) {
  TaskId send = nthOfKind(plan, place, TaskKind::send);
  if (send == noId)
    return false;
  removeTasks(plan, {send});
  return true;
}

bool missingReceive(Plan &plan, size_t place) {
  TaskId receive = nthOfKind(plan, place, TaskKind::receive);
  if (receive == noId)
    return false;
  removeTasks(plan, {receive, finishOf(plan, receive)});
  return true;
}

bool swappedSendAndReceive(Plan &plan, size_t place) {
  TaskId send = nthOfKind(plan, place, TaskKind::send);
  if (send == noId)
    return false;
  uint32_t channel = channelOf(plan.tasks[send]);
  for (Task &task : plan.tasks)
    if (const Send old = task.as<Send>() ? *task.as<Send>() : Send(); task.as<Send>() && old.channel == channel)
      task.work = Receive{old.value, old.peerStage, old.channel};
    else if (const Receive old = task.as<Receive>() ? *task.as<Receive>() : Receive();
             task.as<Receive>() && old.channel == channel)
      task.work = Send{old.value, old.peerStage, old.channel};
  return true;
}

bool messageToTheWrongStage(Plan &plan, size_t place) {
  TaskId send = nthOfKind(plan, place, TaskKind::send);
  if (send == noId)
    return false;
  setPeer(plan.tasks[send], plan.tasks[send].stage);
  return true;
}

bool messageOfAnotherType(Plan &plan, size_t place) {
  TaskId receive = nthOfKind(plan, place, TaskKind::receive);
  if (receive == noId)
    return false;
  plan.values[plan.tasks[receive].as<Receive>()->value].dtype = DType::i32;
  return true;
}

bool twoSendsOnOneChannel(Plan &plan, size_t place) {
  TaskId first = nthOfKind(plan, place, TaskKind::send), second = nthOfKind(plan, place + 1, TaskKind::send);
  if (first == noId || second == noId || chunkOf(plan, first).program != chunkOf(plan, second).program)
    return false;
  setChannel(plan.tasks[second], channelOf(plan.tasks[first]));
  return true;
}

/// The receiver of a message gets to answer before the message was sent.
bool stagesThatWaitForEachOther(Plan &plan, size_t place) {
  TaskId send = nthOfKind(plan, place, TaskKind::send);
  if (send == noId)
    return false;
  uint32_t program = chunkOf(plan, send).program;
  TaskId receive = nthTask(plan, 0, [&](TaskId id, const Task &task) {
    return task.as<Receive>() && channelOf(task) == channelOf(plan.tasks[send]) && chunkOf(plan, id).program == program;
  });
  TaskId arrived = finishOf(plan, receive);
  auto newValue = [&](uint32_t stage) {
    Value value;
    value.name = "answer";
    value.stage = stage;
    value.shape = value.globalShape = {16};
    value.sharding = {std::nullopt};
    value.bytes = value.stride = 64;
    value.offset = plan.memory[stage].arenaBytes;
    plan.memory[stage].arenaBytes += 64;
    if (!plan.predicted.peakBytes.empty())
      plan.predicted.peakBytes[stage] += 64;
    plan.values.push_back(value);
    return ValueId(plan.values.size() - 1);
  };
  constexpr uint32_t channel = 100000;
  const uint32_t sender = plan.tasks[send].stage, receiver = plan.tasks[receive].stage;
  Task made, answer, wait, end;
  made.name = answer.name = "make answer";
  made.stage = answer.stage = receiver;
  ValueId value = newValue(receiver);
  made.work = Zero{value};
  made.deps = {arrived};
  TaskId madeId = insertAfter(plan, arrived, made);
  answer.work = Send{value, sender, channel};
  answer.deps = {madeId};
  insertAfter(plan, madeId, answer);
  wait.name = "wait for answer";
  wait.stage = sender;
  wait.work = Receive{newValue(sender), receiver, channel};
  // At the place of the send, which comes behind it.
  Chunk &chunk = chunkOf(plan, send);
  auto at = std::find(chunk.tasks.begin(), chunk.tasks.end(), send) - chunk.tasks.begin();
  TaskId waitId = TaskId(plan.tasks.size()), endId = waitId + 1;
  end.name = "answer is here";
  end.stage = wait.stage;
  end.work = Finish{waitId};
  end.deps = {waitId};
  plan.tasks.push_back(wait);
  plan.tasks.push_back(end);
  chunk.tasks.insert(chunk.tasks.begin() + at, {waitId, endId});
  plan.tasks[send].deps.push_back(endId);
  return true;
}

//===- Placement and order ---------------------------------------------------------------------------------------===//

bool opPlacedTwice(Plan &plan, size_t place) {
  TaskId task = nthOfKind(plan, place, TaskKind::kernel);
  if (task == noId)
    return false;
  for (Chunk &chunk : plan.chunks)
    if (chunk.stage == plan.tasks[task].stage && !holds(chunk.tasks, task)) {
      chunk.tasks.push_back(task);
      return true;
    }
  chunkOf(plan, task).tasks.push_back(task);
  return true;
}

bool opPlacedNowhere(Plan &plan, size_t place) {
  TaskId task = nthOfKind(plan, place, TaskKind::kernel);
  if (task == noId)
    return false;
  std::erase(chunkOf(plan, task).tasks, task);
  return true;
}

/// As if the compiler had forgotten a layer whose result a later op reads.
bool missingOp(Plan &plan, size_t place) {
  TaskId task = nthTask(plan, place, [&](TaskId id, const Task &task) {
    std::vector<ValueId> writes = writesOf(task);
    if (!task.as<Kernel>() || writes.size() != 1 || holds(readsOf(task), writes[0]))
      return false;
    ValueId made = writes[0];
    bool isRead = false;
    for (const Task &other : plan.tasks)
      isRead |= holds(readsOf(other), made) && !holds(writesOf(other), made);
    return isRead && !isPersistent(plan.values[made]) && nthTask(plan, 1, [&](TaskId, const Task &other) {
                                                           return holds(writesOf(startOf(plan, other)), made);
                                                         }) == noId;
  });
  if (task == noId)
    return false;
  removeTasks(plan, {task});
  return true;
}

bool opOnTheWrongStage(Plan &plan, size_t place) {
  TaskId task = nthOfKind(plan, place, TaskKind::kernel);
  if (task == noId || plan.numStages() < 2)
    return false;
  plan.tasks[task].stage = (plan.tasks[task].stage + 1) % plan.numStages();
  return true;
}

bool valueOfAnotherStage(Plan &plan, size_t place) {
  TaskId task = nthTask(
      plan, place, [](TaskId, const Task &task) { return task.as<Kernel>() && !task.as<Kernel>()->buffers.empty(); });
  if (task == noId || plan.numStages() < 2)
    return false;
  ValueId other = nthValue(plan, 0, [&](const Value &value) { return value.stage != plan.tasks[task].stage; });
  plan.tasks[task].as<Kernel>()->buffers[0].value = other;
  return true;
}

bool microbatchTwice(Plan &plan, size_t place) {
  size_t stage = 0, index = 0;
  Action *action = findAction(plan, place, Phase::forward, stage, index);
  if (!action)
    return false;
  std::vector<Action> &list = listOf(plan, action);
  list.insert(list.begin() + ptrdiff_t(index), Action(list[index]));
  return true;
}

bool microbatchMissing(Plan &plan, size_t place) {
  size_t stage = 0, index = 0;
  Action *action = findAction(plan, place, Phase::backward, stage, index);
  if (!action)
    return false;
  std::vector<Action> &list = listOf(plan, action);
  list.erase(list.begin() + ptrdiff_t(index));
  return true;
}

bool backwardBeforeForward(Plan &plan, size_t place) {
  size_t stage = 0, index = 0;
  Action *backward = findAction(plan, place, Phase::backward, stage, index);
  if (!backward)
    return false;
  std::vector<Action> &list = listOf(plan, backward);
  for (size_t before = 0; before < index; ++before)
    if (plan.chunks[list[before].chunk].phase == Phase::forward && list[before].microbatch == list[index].microbatch) {
      std::rotate(list.begin() + ptrdiff_t(before), list.begin() + ptrdiff_t(index),
                  list.begin() + ptrdiff_t(index) + 1);
      return true;
    }
  return false;
}

bool updateBeforeTheEnd(Plan &plan, size_t place) {
  size_t stage = 0, index = 0;
  Action *update = findAction(plan, place, Phase::update, stage, index);
  if (!update || index == 0)
    return false;
  std::vector<Action> &list = listOf(plan, update);
  std::swap(list[index], list[index - 1]);
  return true;
}

bool missingDependency(Plan &plan, size_t place) {
  TaskId task = nthTask(plan, place, [&](TaskId id, const Task &task) {
    return task.as<Kernel>() && !task.deps.empty() && readsOfItsChunk(plan, id);
  });
  if (task == noId)
    return false;
  plan.tasks[task].deps.clear();
  return true;
}

bool dependencyOnALaterOp(Plan &plan, size_t place) {
  TaskId task = nthTask(plan, place, [](TaskId, const Task &task) { return !task.deps.empty(); });
  if (task == noId)
    return false;
  plan.tasks[plan.tasks[task].deps[0]].deps.push_back(task);
  return true;
}

//===- Memory and shards -----------------------------------------------------------------------------------------===//

bool shardOffByOne(Plan &plan, size_t place) {
  ValueId value = nthValue(plan, place, [](const Value &value) {
    return isPersistent(value) &&
           std::any_of(value.sharding.begin(), value.sharding.end(), [](auto &axis) { return axis.has_value(); });
  });
  if (value == noId)
    return false;
  for (size_t dim = 0; dim < plan.values[value].shape.size(); ++dim)
    if (plan.values[value].sharding[dim])
      --plan.values[value].shape[dim];
  return true;
}

bool shardOverTheOtherAxis(Plan &plan, size_t place) {
  ValueId value = nthValue(plan, place, [](const Value &value) {
    return value.kind == ValueKind::parameter &&
           std::any_of(value.sharding.begin(), value.sharding.end(), [](auto &axis) { return axis == Axis::tensor; });
  });
  if (value == noId)
    return false;
  for (std::optional<Axis> &axis : plan.values[value].sharding)
    if (axis == Axis::tensor)
      axis = Axis::data;
  return true;
}

bool staleSlot(Plan &plan, size_t place) {
  std::set<ValueId> kept; // made in a forward and read in a backward chunk
  for (const Chunk &chunk : plan.chunks)
    if (chunk.phase == Phase::backward)
      for (TaskId task : chunk.tasks)
        for (ValueId value : readsOf(startOf(plan, plan.tasks[task])))
          kept.insert(value);
  for (ValueId value : kept)
    if (plan.values[value].slots > 1 && plan.values[value].kind == ValueKind::activation && place-- == 0) {
      plan.values[value].slots = 1;
      return true;
    }
  return false;
}

bool inputWithTooFewSlots(Plan &plan, size_t place) {
  ValueId value =
      nthValue(plan, place, [](const Value &value) { return value.slots > 1 && value.kind == ValueKind::input; });
  if (value == noId)
    return false;
  --plan.values[value].slots;
  return true;
}

/// Two operands of one op in the same bytes.
bool operandsThatShareBytes(Plan &plan, size_t place) {
  for (const Task &task : plan.tasks)
    for (ValueId first : readsOf(task))
      for (ValueId second : readsOf(task)) {
        Value &a = plan.values[first], &b = plan.values[second];
        if (task.as<Kernel>() && first < second && a.bytes && b.bytes && !isPersistent(a) && !isPersistent(b) &&
            a.offset != b.offset && place-- == 0) {
          b.offset = a.offset;
          return true;
        }
      }
  return false;
}

bool activationOnAParameter(Plan &plan, size_t place) {
  ValueId value =
      nthValue(plan, place, [](const Value &value) { return value.kind == ValueKind::activation && value.bytes; });
  if (value == noId)
    return false;
  ValueId parameter = nthValue(plan, 0, [&](const Value &other) {
    return other.kind == ValueKind::parameter && other.stage == plan.values[value].stage;
  });
  if (parameter == noId)
    return false;
  plan.values[value].offset = plan.values[parameter].offset;
  return true;
}

bool valueBehindTheArena(Plan &plan, size_t place) {
  if (place >= plan.values.size() || !plan.values[place].bytes)
    return false;
  plan.values[place].offset = plan.memory[plan.values[place].stage].arenaBytes;
  return true;
}

bool misalignedValue(Plan &plan, size_t place) {
  if (place >= plan.values.size())
    return false;
  plan.values[place].offset += 4;
  return true;
}

bool bufferTooSmall(Plan &plan, size_t place) {
  ValueId value =
      nthValue(plan, place, [](const Value &value) { return value.kind != ValueKind::scratch && value.bytes; });
  if (value == noId)
    return false;
  --plan.values[value].bytes;
  return true;
}

bool peakThatIsNotTheArena(Plan &plan, size_t place) {
  if (place >= plan.predicted.peakBytes.size())
    return false;
  plan.predicted.peakBytes[place] -= 64;
  return true;
}

bool outputThatNothingWrites(Plan &plan, size_t place) {
  for (Program &program : plan.programs)
    for (Port &port : program.outputs)
      if (place-- == 0) {
        Value value = plan.values[port.values[0]];
        value.name += " of nobody";
        value.kind = ValueKind::activation;
        value.offset = plan.memory[value.stage].arenaBytes;
        plan.memory[value.stage].arenaBytes += 64;
        if (!plan.predicted.peakBytes.empty())
          plan.predicted.peakBytes[value.stage] += 64;
        value.bytes = 64;
        port.values[0] = ValueId(plan.values.size());
        plan.values.push_back(value);
        return true;
      }
  return false;
}

bool portOfScratch(Plan &plan, size_t place) {
  for (Program &program : plan.programs)
    for (std::vector<Port> *ports : {&program.inputs, &program.outputs})
      for (Port &port : *ports)
        if (place-- == 0) {
          plan.values[port.values[0]].kind = ValueKind::scratch;
          return true;
        }
  return false;
}

bool negativeBatch(Plan &plan, size_t place) {
  if (place >= plan.programs.size())
    return false;
  plan.programs[place].batch = -1;
  return true;
}

//===- Devices and roles -----------------------------------------------------------------------------------------===//

bool kernelOnHostMemory(Plan &plan, size_t place) {
  TaskId task = nthOfKind(plan, place, TaskKind::kernel);
  if (task == noId)
    return false;
  for (StageMemory &stage : plan.memory)
    stage.device = DeviceKind::cuda;
  plan.values[valuesOf(plan.tasks[task])[0]].space = MemorySpace::host;
  return true;
}

bool stageWithoutADevice(Plan &plan, size_t place) {
  if (place >= plan.memory.size())
    return false;
  plan.memory.resize(place);
  return true;
}

bool serverWithMicrobatches(Plan &plan, size_t place) {
  if (place >= plan.programs.size())
    return false;
  plan.programs[place].role = Role::server;
  return true;
}

bool twoProgramsOfOneKind(Plan &plan, size_t place) {
  if (place + 1 >= plan.programs.size())
    return false;
  plan.programs[place + 1].kind = plan.programs[place].kind;
  return true;
}

/// In the same place, but on the other side of the bus.
bool sharedPlaceInTwoSpaces(Plan &plan, size_t place) {
  ValueId value = nthValue(plan, place, [](const Value &value) { return isPersistent(value) && value.bytes; });
  if (value == noId)
    return false;
  Value copy = plan.values[value];
  copy.name += " of the host";
  copy.space = MemorySpace::host;
  plan.values.push_back(copy);
  return true;
}

} // namespace

const std::vector<FaultKind> &faultKinds() {
  static const std::vector<FaultKind> kinds = {
      {"missing reduction", missingReduction, "expected a reduction"},
      {"double reduction", doubleReduction, "summed over it before"},
      {"reduction over the wrong axis", wrongAxis, "expected a reduction"},
      {"unfinished reduction", unfinishedReduction},
      {"read before its communication is finished", readBeforeItsFinish},
      {"collectives out of order", collectivesOutOfOrder},
      {"unknown algorithm of a collective", unknownAlgorithm},
      {"missing accumulation of a micro-batch", missingAccumulation},
      {"sum that is not zeroed", sumNotZeroed},
      {"missing send", missingSend},
      {"missing receive", missingReceive},
      {"swapped send and receive", swappedSendAndReceive},
      {"message to the wrong stage", messageToTheWrongStage},
      {"message of another type", messageOfAnotherType},
      {"two sends on one channel", twoSendsOnOneChannel, "are both sends"},
      {"stages that wait for each other (deadlock)", stagesThatWaitForEachOther, "deadlock"},
      {"op placed twice", opPlacedTwice},
      {"op placed nowhere", opPlacedNowhere},
      {"missing op", missingOp},
      {"op on the wrong stage", opOnTheWrongStage},
      {"value of another stage", valueOfAnotherStage},
      {"micro-batch run twice", microbatchTwice},
      {"micro-batch missing", microbatchMissing},
      {"backward before its forward", backwardBeforeForward},
      {"update before the last backward", updateBeforeTheEnd},
      {"missing dependency", missingDependency},
      {"dependency on a later op", dependencyOnALaterOp},
      {"shard off by one", shardOffByOne},
      {"shard over the other axis", shardOverTheOtherAxis},
      {"stale buffer: a slot too few", staleSlot},
      {"input with too few slots", inputWithTooFewSlots},
      {"operands that share bytes", operandsThatShareBytes},
      {"activation on a parameter", activationOnAParameter},
      {"value behind the arena", valueBehindTheArena},
      {"misaligned value", misalignedValue},
      {"buffer too small", bufferTooSmall},
      {"predicted peak that is not the arena", peakThatIsNotTheArena},
      {"output that nothing writes", outputThatNothingWrites},
      {"port of scratch", portOfScratch, "is scratch"},
      {"negative batch", negativeBatch, "expected 0 or more"},
      {"kernel on a GPU that touches host memory", kernelOnHostMemory, "in host memory"},
      {"stage without a device", stageWithoutADevice, "memory: "},
      {"server that sees micro-batches", serverWithMicrobatches, "of servers"},
      {"two programs of one kind", twoProgramsOfOneKind, "a second program"},
      {"one place in two memory spaces", sharedPlaceInTwoSpaces, "overlaps"},
  };
  return kinds;
}

} // namespace dg::plan::testing
