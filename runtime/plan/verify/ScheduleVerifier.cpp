// SPDX-License-Identifier: Apache-2.0
// Schedules: what runs how often, which micro-batch a slot holds, and whether all stages reach the end.
#include "runtime/plan/verify/ScheduleVerifier.h"
#include "runtime/plan/ChunkOrder.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <set>

namespace dg::plan {

namespace {

std::string describe(const Plan &plan, const Program &program, uint32_t stage, size_t index) {
  const Action &action = program.actions[stage][index];
  return fmt::format("program '{}', stage {}, action {} ({} of micro-batch {}, chunk {})", nameOf(program.kind), stage,
                     index, nameOf(plan.chunks[action.chunk].phase), action.microbatch, action.chunk);
}

//===- How often, in which order --------------------------------------------------------------------------------===//

Status checkCounts(const Plan &plan, const Program &program, uint32_t stage) {
  std::set<std::pair<ChunkId, uint32_t>> seen;
  std::map<ChunkId, uint32_t> counts;
  Phase latest = Phase::begin;
  const std::vector<Action> &actions = program.actions[stage];
  for (size_t i = 0; i < actions.size(); ++i) {
    Phase phase = plan.chunks[actions[i].chunk].phase;
    if (!seen.insert({actions[i].chunk, actions[i].microbatch}).second)
      return Status::error(ErrorKind::badInput, "plan: {} runs a second time", describe(plan, program, stage, i));
    ++counts[actions[i].chunk];
    if ((phase == Phase::begin && latest != Phase::begin) || (latest == Phase::update && phase != Phase::update))
      return Status::error(ErrorKind::badInput, "plan: {} comes after a {}: begin comes first and update last",
                           describe(plan, program, stage, i), nameOf(latest));
    latest = std::max(latest, phase);
  }
  for (const auto &[chunk, count] : counts) {
    uint32_t expected = isPerMicrobatch(plan.chunks[chunk].phase) ? program.microbatches : 1;
    if (count != expected)
      return Status::error(ErrorKind::badInput,
                           "plan: program '{}', stage {}: chunk {} ({}) runs {} times, expected {} of {} micro-batches",
                           nameOf(program.kind), stage, chunk, nameOf(plan.chunks[chunk].phase), count, expected,
                           program.microbatches);
  }
  return Status::ok();
}

//===- What a slot holds ----------------------------------------------------------------------------------------===//

/// What a chunk needs from before, and what it leaves.
struct ChunkFlow {
  std::vector<std::pair<ValueId, TaskId>> needs;
  std::vector<ValueId> leaves; ///< in the order of their last write
  std::set<uint32_t> inLoops;  ///< buffers whose slot is the loop's trip, not the micro-batch
};

ChunkFlow flowOf(const Plan &plan, const PlanFacts &facts, ChunkId chunk) {
  ChunkFlow flow;
  std::set<uint32_t> written;
  std::set<ValueId> needed;
  for (TaskId task : plan.chunks[chunk].tasks) {
    const TaskAccess &access = facts.access[task];
    for (ValueId value : access.exposed)
      if (!written.contains(facts.bufferOf[value]) && needed.insert(value).second)
        flow.needs.emplace_back(value, task);
    for (ValueId value : access.writes) {
      written.insert(facts.bufferOf[value]);
      flow.leaves.push_back(value);
    }
    if (plan.tasks[task].as<Loop>())
      for (const auto *list : {&access.reads, &access.writes})
        for (ValueId value : *list)
          flow.inLoops.insert(facts.bufferOf[value]);
  }
  return flow;
}

/// Follows one stage through its actions: who wrote each slot of each buffer last, and for which micro-batch.
class SlotHistory {
public:
  SlotHistory(const Plan &plan, const PlanFacts &facts, const Program &program, uint32_t stage)
      : plan(plan), facts(facts), program(program), stage(stage), use(gatherUse(plan, facts, program, stage)) {
    for (ChunkId chunk : use.chunks)
      flows.emplace(chunk, flowOf(plan, facts, chunk));
    for (ValueId value = 0; value < plan.values.size(); ++value)
      if (isPersistent(plan.values[value].kind) || plan.values[value].kind == ValueKind::input)
        given.insert(facts.bufferOf[value]);
  }

  Status run(int64_t replica) {
    slots.clear();
    DG_RETURN_IF_ERROR(checkWritten());
    for (size_t i = 0; i < program.actions[stage].size(); ++i)
      if (const Action &action = program.actions[stage][i]; program.isRunBy(replica, plan.chunks[action.chunk], action))
        DG_RETURN_IF_ERROR(runAction(i));
    for (const Port &port : program.outputs)
      for (ValueId value : port.values)
        if (plan.values[value].stage == stage && !given.contains(facts.bufferOf[value]) &&
            !slots.contains({facts.bufferOf[value], program.microbatchesOf(replica)[0] % plan.values[value].slots}))
          return Status::error(ErrorKind::badInput, "plan: program '{}': output '{}' (values[{}]) is never written",
                               nameOf(program.kind), port.name, value);
    return Status::ok();
  }

private:
  struct Content {
    ValueId value = noId;
    uint32_t microbatch = 0;
    bool perMicrobatch = false;
  };

  /// Bytes that another value left in the same place are no value.
  Status checkWritten() const {
    for (ChunkId chunk : use.chunks)
      for (TaskId task : plan.chunks[chunk].tasks)
        for (ValueId value : facts.access[task].exposed) {
          ValueKind kind = plan.values[value].kind;
          if (!use.written[value] && !isPersistent(kind) && kind != ValueKind::input && kind != ValueKind::scratch)
            return Status::error(ErrorKind::badInput,
                                 "plan: program '{}', stage {}: ops[{}] ('{}') reads values[{}] ('{}'): nothing has "
                                 "written it yet, and no op of the program does",
                                 nameOf(program.kind), stage, task, plan.tasks[task].name, value,
                                 plan.values[value].name);
        }
    return Status::ok();
  }

  Status runAction(size_t index) {
    const Action &action = program.actions[stage][index];
    const ChunkFlow &flow = flows.at(action.chunk);
    bool perMicrobatch = isPerMicrobatch(plan.chunks[action.chunk].phase);
    auto slotOf = [&](ValueId value) {
      bool inLoop = flow.inLoops.contains(facts.bufferOf[value]);
      return std::pair(facts.bufferOf[value], inLoop ? 0 : action.microbatch % plan.values[value].slots);
    };
    for (const auto &need : flow.needs) {
      const ValueId value = need.first;
      const TaskId task = need.second;
      auto wrong = [&](std::string_view what) {
        return Status::error(ErrorKind::badInput, "plan: {}: ops[{}] ('{}') reads values[{}] ('{}'): {}",
                             describe(plan, program, stage, index), task, plan.tasks[task].name, value,
                             plan.values[value].name, what);
      };
      if (plan.values[value].kind == ValueKind::input && plan.values[value].slots < program.microbatches)
        return wrong(
            fmt::format("an input with {} slots for {} micro-batches", plan.values[value].slots, program.microbatches));
      if (given.contains(facts.bufferOf[value]) || plan.values[value].kind == ValueKind::scratch)
        continue;
      auto found = slots.find(slotOf(value));
      if (found == slots.end())
        return wrong("nothing has written it yet");
      const Content &content = found->second;
      if (content.value != value)
        return wrong(
            fmt::format("values[{}] ('{}') has overwritten it", content.value, plan.values[content.value].name));
      ValueKind kind = plan.values[value].kind;
      bool ofOneMicrobatch = (kind == ValueKind::activation || kind == ValueKind::gradient) && perMicrobatch &&
                             content.perMicrobatch && !flow.inLoops.contains(facts.bufferOf[value]);
      if (ofOneMicrobatch && content.microbatch != action.microbatch)
        return wrong(fmt::format("its slot holds micro-batch {}; with {} slots it does not live long enough",
                                 content.microbatch, plan.values[value].slots));
    }
    for (ValueId value : flow.leaves)
      slots[slotOf(value)] = {value, action.microbatch, perMicrobatch};
    return Status::ok();
  }

  const Plan &plan;
  const PlanFacts &facts;
  const Program &program;
  uint32_t stage;
  ProgramUse use;
  std::map<ChunkId, ChunkFlow> flows;
  std::set<uint32_t> given; ///< buffers that hold something before the step
  std::map<std::pair<uint32_t, uint32_t>, Content> slots;
};

Status checkInputs(const Plan &plan, const Program &program) {
  for (const Port &port : program.inputs)
    for (ValueId value : port.values)
      if (plan.values[value].kind != ValueKind::input)
        return Status::error(ErrorKind::badInput, "plan: program '{}': input '{}': values[{}] is not of kind input",
                             nameOf(program.kind), port.name, value);
  return Status::ok();
}

//===- Deadlock -------------------------------------------------------------------------------------------------===//

/// Something in a chunk that may wait for another stage, or for which another stage may wait.
struct Event {
  enum class Kind { send, received, overwrite, join, joined } kind;
  TaskId task;
  uint32_t channel;          ///< overwrite: the buffer that was sent
  uint32_t slots;            ///< of that buffer
  std::vector<size_t> after; ///< events of the chunk that must have happened
};

/// Runs only the events; what stands between them cannot wait. Within an action they happen as dependencies allow, as
/// in the executor.
class Progress {
public:
  Progress(const Plan &plan, const PlanFacts &facts, const Program &program)
      : plan(plan), facts(facts), program(program), stages(plan.numStages()) {
    std::map<uint32_t, ValueId> sentBuffers;
    std::vector<std::vector<ChunkId>> chunks;
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      chunks.push_back(gatherUse(plan, facts, program, stage).chunks);
      for (ChunkId chunk : chunks.back())
        for (TaskId task : plan.chunks[chunk].tasks)
          if (const Send *send = plan.tasks[task].as<Send>())
            sentBuffers.emplace(facts.bufferOf[send->value], send->value);
    }
    for (const std::vector<ChunkId> &list : chunks)
      for (ChunkId chunk : list)
        events.emplace(chunk, eventsOf(chunk, sentBuffers));
  }

  Status run(int64_t runs) {
    replica = runs;
    stages.assign(plan.numStages(), {});
    underWay.clear(), unread.clear(), joined.clear();
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t stage = 0; stage < stages.size(); ++stage)
        while (advance(stage))
          moved = true;
    }
    std::string stuck;
    for (uint32_t stage = 0; stage < stages.size(); ++stage)
      if (stages[stage].action < program.actions[stage].size())
        stuck += (stuck.empty() ? "" : "; ") + describeWait(stage);
    if (stuck.empty())
      return Status::ok();
    return Status::error(ErrorKind::badInput, "plan: the schedule deadlocks: {}", stuck);
  }

private:
  struct StageState {
    size_t action = 0;
    std::vector<bool> done; ///< events of the action
  };
  using Message = std::pair<uint32_t, uint32_t>; ///< channel, micro-batch
  using Slot = std::pair<uint32_t, uint32_t>;    ///< buffer, slot

  std::vector<Event> eventsOf(ChunkId chunk, const std::map<uint32_t, ValueId> &sentBuffers) const {
    std::vector<Event> found;
    for (TaskId id : plan.chunks[chunk].tasks) {
      const Task &task = plan.tasks[id];
      for (const auto &[buffer, sent] : sentBuffers)
        if (std::any_of(facts.access[id].writes.begin(), facts.access[id].writes.end(),
                        [&](ValueId written) { return sharesBytes(written, sent); }))
          found.push_back({Event::Kind::overwrite, id, buffer, plan.values[sent].slots, {}});
      const Task &start = startOf(plan, task);
      const bool isFinish = task.as<Finish>();
      if (const Send *send = task.as<Send>())
        found.push_back({Event::Kind::send, id, send->channel, plan.values[send->value].slots, {}});
      if (isFinish && start.as<Receive>())
        found.push_back({Event::Kind::received, id, channelOf(start), 1, {}});
      if (isCollective(start.kind()) && axisOf(start) == Axis::pipe)
        found.push_back({isFinish ? Event::Kind::joined : Event::Kind::join, id, channelOf(start), 1, {}});
    }
    if (found.empty())
      return found;
    ChunkOrder order(plan, plan.chunks[chunk], facts.positionOf);
    for (size_t later = 0; later < found.size(); ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (found[earlier].task == found[later].task ||
            order.isBefore(facts.positionOf[found[earlier].task], facts.positionOf[found[later].task]))
          found[later].after.push_back(earlier);
    return found;
  }

  /// Whether writing `a` may have to wait for a send of `b`. Values with several slots overlap no other buffer.
  bool sharesBytes(ValueId a, ValueId b) const {
    const Value &x = plan.values[a], &y = plan.values[b];
    return facts.bufferOf[a] == facts.bufferOf[b] ||
           (x.stage == y.stage && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes);
  }

  /// Lets every event happen that can; goes on to the next action when all have. False if nothing moved.
  bool advance(uint32_t stage) {
    StageState &state = stages[stage];
    if (state.action == program.actions[stage].size())
      return false;
    const Action &action = program.actions[stage][state.action];
    if (!program.isRunBy(replica, plan.chunks[action.chunk], action)) {
      ++state.action;
      return true;
    }
    const std::vector<Event> &list = events.at(action.chunk);
    state.done.resize(list.size(), false);
    bool moved = false, complete = true;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!state.done[i] && isReady(state, list[i]) && canHappen(list[i], action.microbatch)) {
        happen(list[i], action.microbatch);
        state.done[i] = moved = true;
      }
      complete = complete && state.done[i];
    }
    if (complete) {
      ++state.action;
      state.done.clear();
    }
    return moved || complete;
  }

  static bool isReady(const StageState &state, const Event &event) {
    return std::all_of(event.after.begin(), event.after.end(), [&](size_t i) { return state.done[i]; });
  }

  bool canHappen(const Event &event, uint32_t microbatch) const {
    switch (event.kind) {
    case Event::Kind::send:
    case Event::Kind::join:
      return true;
    case Event::Kind::received:
      return underWay.contains({event.channel, microbatch});
    case Event::Kind::overwrite:
      return !unread.contains({event.channel, microbatch % event.slots});
    case Event::Kind::joined: {
      auto found = joined.find({event.channel, microbatch});
      return found != joined.end() && found->second == plan.numStages();
    }
    }
    return false;
  }

  void happen(const Event &event, uint32_t microbatch) {
    if (event.kind == Event::Kind::send) {
      Slot slot(facts.bufferOf[plan.tasks[event.task].as<Send>()->value], microbatch % event.slots);
      underWay.emplace(Message(event.channel, microbatch), slot);
      unread.insert(slot);
    } else if (event.kind == Event::Kind::received) {
      auto message = underWay.find({event.channel, microbatch});
      unread.erase(unread.find(message->second));
      underWay.erase(message);
    } else if (event.kind == Event::Kind::join) {
      ++joined[{event.channel, microbatch}];
    }
  }

  std::string describeWait(uint32_t stage) const {
    const StageState &state = stages[stage];
    const Action &action = program.actions[stage][state.action];
    for (size_t i = 0; const Event &event : events.at(action.chunk)) {
      if (!state.done[i++] && isReady(state, event)) {
        std::string what;
        if (event.kind == Event::Kind::received)
          what = fmt::format("waits for channel {} from stage {}", event.channel,
                             peerStageOf(startOf(plan, plan.tasks[event.task])));
        else if (event.kind == Event::Kind::overwrite)
          what = fmt::format("waits until what it sent on channel {} was received",
                             channelUnderWay(event, action.microbatch));
        else
          what = fmt::format("waits for the collective at position {} over pipe", event.channel);
        return fmt::format("{}: ops[{}] ('{}') {}", describe(plan, program, stage, state.action), event.task,
                           plan.tasks[event.task].name, what);
      }
    }
    return describe(plan, program, stage, state.action);
  }

  /// The channel on which the contents of an overwritten slot are under way.
  uint32_t channelUnderWay(const Event &event, uint32_t microbatch) const {
    for (const auto &[message, slot] : underWay)
      if (slot == Slot(event.channel, microbatch % event.slots))
        return message.first;
    return noId;
  }

  const Plan &plan;
  const PlanFacts &facts;
  const Program &program;
  int64_t replica = 0; ///< whose actions are followed
  std::vector<StageState> stages;
  std::map<ChunkId, std::vector<Event>> events;
  std::map<Message, Slot> underWay;
  std::multiset<Slot> unread; ///< slots that were sent and not yet received
  std::map<Message, uint32_t> joined;
};

} // namespace

Status verifyActions(const Plan &plan, const PlanFacts &facts, const Program &program) {
  DG_RETURN_IF_ERROR(checkInputs(plan, program));
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
    DG_RETURN_IF_ERROR(checkCounts(plan, program, stage));
    SlotHistory history(plan, facts, program, stage);
    for (int64_t replica = 0; replica < plan.mesh.replicas; ++replica)
      DG_RETURN_IF_ERROR(history.run(replica));
  }
  return Status::ok();
}

Status verifyProgress(const Plan &plan, const PlanFacts &facts, const Program &program) {
  Progress progress(plan, facts, program);
  for (int64_t replica = 0; replica < plan.mesh.replicas; ++replica)
    DG_RETURN_IF_ERROR(progress.run(replica));
  return Status::ok();
}

} // namespace dg::plan
