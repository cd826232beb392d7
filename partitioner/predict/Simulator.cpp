// SPDX-License-Identifier: Apache-2.0
// A queue of events (kernel done, communication done, message arrived). A stage runs one chunk instance at a time;
// inside it a kernel starts when its dependencies are complete and the compute lane is free, the earliest in the chunk
// first. A message is sent eagerly: it travels whether or not the receiver has posted its receive. Links are not shared
// between stages. Where the cores of a host are the devices, they move the bytes inside it: such a transfer takes the
// compute lane, before kernels. With fewer cores than ranks a stage computes only while it holds cores (CoreQueue).
// O(T log T) for T task instances.
#include "partitioner/predict/Simulator.h"

#include "partitioner/predict/CoreQueue.h"
#include "partitioner/predict/TaskDurations.h"
#include "runtime/plan/Replication.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

namespace dg::partitioner {

namespace {

using plan::ChunkId;
using plan::Plan;
using plan::Program;
using plan::Task;
using plan::TaskId;

/// A chunk with what every instance of it needs; tasks are named by their position in the chunk.
struct PreparedChunk {
  std::vector<TaskId> tasks;
  std::vector<TaskDurations::Cost> cost;
  std::vector<uint32_t> numDeps;
  std::vector<std::vector<uint32_t>> dependents; ///< by dependency
  std::vector<std::vector<uint32_t>> finishers;  ///< of a communication task
};

class Simulation {
public:
  Simulation(const Plan &plan, const Program &program, const CostModel &costs, std::vector<SimulatedTask> *record)
      : plan(plan), program(program), durations(plan, costs), record(record), stages(program.actions.size()),
        cores(plan.mesh, costs.cluster()), turnUs(cores.isShared() ? costs.cluster().turnUs : 0) {}

  Result<plan::Predicted> run() {
    chunks.resize(plan.chunks.size());
    for (const std::vector<plan::Action> &actions : program.actions)
      for (const plan::Action &action : actions)
        DG_RETURN_IF_ERROR(prepare(action.chunk));
    for (uint32_t s = 0; s < stages.size(); ++s) {
      beginInstance(s);
      proceed(s);
    }
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      const bool isOfCore =
          event.kind == EventKind::kernelDone || event.kind == EventKind::sliceOver || event.kind == EventKind::leave;
      if (isOfCore && event.sequence != stages[event.stage].coreEvent)
        continue; // something else happened before
      now = event.timeUs;
      handle(event);
    }
    for (uint32_t s = 0; s < stages.size(); ++s)
      DG_RETURN_IF_ERROR(checkFinished(s));
    if (record)
      std::sort(record->begin(), record->end(), [](const SimulatedTask &a, const SimulatedTask &b) {
        return std::tie(a.startUs, a.task, a.microbatch) < std::tie(b.startUs, b.task, b.microbatch);
      });
    return summarise();
  }

private:
  enum class EventKind { kernelDone, sliceOver, leave, commDone, arrival };
  struct Event {
    double timeUs;
    uint64_t sequence; ///< equal times: in the order of their making
    EventKind kind;
    uint32_t stage;
    size_t action;                         ///< the instance, but for arrival
    uint32_t position;                     ///< the task in its chunk
    std::pair<uint32_t, uint32_t> message; ///< channel and micro-batch, for arrival
    bool operator>(const Event &other) const {
      return std::tie(timeUs, sequence) > std::tie(other.timeUs, other.sequence);
    }
  };
  struct Work { ///< a task of one instance that waits for a lane or has it
    size_t action = 0;
    uint32_t position = 0;
    auto operator<=>(const Work &) const = default;
  };
  using Queue = std::priority_queue<Work, std::vector<Work>, std::greater<>>;
  struct Stage {
    size_t action = 0; ///< the instance that runs
    std::vector<uint32_t> numWaiting;
    size_t numLeft = 0;
    std::vector<uint32_t> ready;                            ///< dependencies complete, not yet issued
    Queue readyKernels, readyTransfers, readyCoreTransfers; ///< those that take the compute lane apart
    bool isComputing = false, isCommunicating = false;
    Work work;                        ///< on the compute lane
    double leftUs = 0, resumedUs = 0; ///< of that work, when it last got its cores
    std::optional<double> startUs;    ///< of that work, once it had its cores
    uint64_t coreEvent = 0;           ///< the next that concerns its cores; others are void
    std::set<std::pair<uint32_t, uint32_t>> arrived;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> expected; ///< message -> position of its receive
    double computeUs = 0, commUs = 0, activeUs = 0, activeSinceUs = 0;
    bool isActive() const { return isComputing || isCommunicating; }
  };

  Status prepare(ChunkId id) {
    PreparedChunk &chunk = chunks[id];
    if (!chunk.tasks.empty())
      return Status::ok();
    chunk.tasks = plan.chunks[id].tasks;
    const size_t n = chunk.tasks.size();
    chunk.numDeps.resize(n);
    chunk.dependents.resize(n);
    chunk.finishers.resize(n);
    std::map<TaskId, uint32_t> positionOf;
    for (uint32_t i = 0; i < n; ++i)
      positionOf[chunk.tasks[i]] = i;
    for (uint32_t i = 0; i < n; ++i) {
      const Task &task = plan.tasks[chunk.tasks[i]];
      Result<TaskDurations::Cost> cost = durations.of(task);
      if (!cost)
        return cost.status();
      chunk.cost.push_back(*cost);
      for (TaskId dep : task.deps)
        if (auto found = positionOf.find(dep); found != positionOf.end()) {
          chunk.dependents[found->second].push_back(i);
          ++chunk.numDeps[i];
        }
      const plan::Finish *finish = task.as<plan::Finish>();
      if (!finish)
        continue;
      if (auto found = positionOf.find(finish->task); found != positionOf.end()) {
        chunk.finishers[found->second].push_back(i);
        ++chunk.numDeps[i];
      }
    }
    return Status::ok();
  }

  const plan::Action &actionOf(uint32_t s) const { return program.actions[s][stages[s].action]; }
  const PreparedChunk &chunkAt(uint32_t s, size_t action) const { return chunks[program.actions[s][action].chunk]; }

  /// Starts the stage's current action, and skips those without tasks.
  void beginInstance(uint32_t s) {
    Stage &stage = stages[s];
    while (stage.action < program.actions[s].size() && chunkAt(s, stage.action).tasks.empty())
      ++stage.action;
    if (stage.action == program.actions[s].size())
      return;
    const PreparedChunk &chunk = chunkAt(s, stage.action);
    stage.numWaiting = chunk.numDeps;
    stage.numLeft = chunk.tasks.size();
    for (uint32_t i = 0; i < chunk.tasks.size(); ++i)
      if (chunk.numDeps[i] == 0)
        stage.ready.push_back(i);
  }

  /// Issues what is ready. A worklist, because completing a task may make others ready and end the instance; what is in
  /// it always belongs to the instance that runs.
  void proceed(uint32_t s) {
    Stage &stage = stages[s];
    while (!stage.ready.empty()) {
      uint32_t position = stage.ready.back();
      stage.ready.pop_back();
      issue(s, position);
    }
    startLanes(s);
  }

  /// The task's dependencies are complete.
  void issue(uint32_t s, uint32_t position) {
    Stage &stage = stages[s];
    const Task &task = plan.tasks[chunkAt(s, stage.action).tasks[position]];
    if (const plan::Receive *receive = task.as<plan::Receive>()) {
      std::pair<uint32_t, uint32_t> message{receive->channel, actionOf(s).microbatch};
      if (stage.arrived.erase(message)) // nobody has waited
        release(s, chunkAt(s, stage.action).finishers[position]);
      else
        stage.expected[message] = position;
      completeTask(s, position);
    } else if (isCommunication(task.kind())) {
      Queue &queue = durations.takesCores(task) ? stage.readyCoreTransfers : stage.readyTransfers;
      queue.push({stage.action, position});
      completeTask(s, position);
    } else if (task.as<plan::Finish>()) {
      completeTask(s, position);
    } else {
      stage.readyKernels.push({stage.action, position});
    }
  }

  void release(uint32_t s, const std::vector<uint32_t> &positions) {
    Stage &stage = stages[s];
    for (uint32_t position : positions)
      if (--stage.numWaiting[position] == 0)
        stage.ready.push_back(position);
  }

  void completeTask(uint32_t s, uint32_t position) {
    Stage &stage = stages[s];
    release(s, chunkAt(s, stage.action).dependents[position]);
    if (--stage.numLeft == 0) {
      ++stage.action;
      beginInstance(s);
    }
  }

  /// A collective is over or a message is here: its finish tasks may go. The instance may be over if nobody waited.
  void completeTransfer(uint32_t s, size_t action, uint32_t position) {
    if (stages[s].action == action)
      release(s, chunkAt(s, action).finishers[position]);
  }

  void setActive(Stage &stage, bool &lane, bool value) {
    bool wasActive = stage.isActive();
    lane = value;
    if (!wasActive && stage.isActive())
      stage.activeSinceUs = now;
    if (wasActive && !stage.isActive())
      stage.activeUs += now - stage.activeSinceUs;
  }

  void startLanes(uint32_t s) {
    Stage &stage = stages[s];
    if (!stage.isComputing && !(stage.readyCoreTransfers.empty() && stage.readyKernels.empty())) {
      const bool isTransfer = !stage.readyCoreTransfers.empty();
      Queue &queue = isTransfer ? stage.readyCoreTransfers : stage.readyKernels;
      stage.work = queue.top();
      queue.pop();
      const TaskDurations::Cost &cost = chunkAt(s, stage.work.action).cost[stage.work.position];
      stage.computeUs += cost.computeUs;
      stage.commUs += cost.commUs;
      const uint32_t ranks = cores.ranksOnCore(s);
      stage.leftUs = ranks * (cost.computeUs + cost.commUs);
      if (isTransfer && ranks > 1 && stage.readyKernels.empty())
        stage.leftUs += ranks * turnUs; // each has to wait for what the others on its core do
      stage.startUs.reset();
      setActive(stage, stage.isComputing, true);
      takeCores(s);
    }
    if (!stage.isCommunicating && !stage.readyTransfers.empty()) {
      Work transfer = stage.readyTransfers.top();
      stage.readyTransfers.pop();
      double busyUs = chunkAt(s, transfer.action).cost[transfer.position].commUs;
      stage.commUs += busyUs;
      setActive(stage, stage.isCommunicating, true);
      push(busyUs, EventKind::commDone, s, transfer.action, transfer.position);
      note(s, transfer, now, now + busyUs);
    }
  }

  /// The work of the compute lane goes on as soon as the stage has its cores.
  void takeCores(uint32_t s) {
    if (!cores.isShared() || cores.holds(s))
      return resume(s);
    cores.ask(s);
    giveCores();
    for (uint32_t other = 0; other < stages.size(); ++other) // those who now have to give way
      if (stages[other].isComputing && cores.holds(other) && other != s)
        retime(other);
  }

  void giveCores() {
    for (uint32_t s : cores.give(now))
      resume(s);
  }

  void resume(uint32_t s) {
    stages[s].resumedUs = now;
    if (!stages[s].startUs)
      stages[s].startUs = now;
    retime(s);
  }

  /// What happens next to the work on the stage's cores: its end, or the end of the slice.
  void retime(uint32_t s) {
    Stage &stage = stages[s];
    const double endUs = stage.resumedUs + stage.leftUs;
    const double sliceUs = cores.isShared() ? cores.endOfSliceUs(s, now) : endUs;
    stage.coreEvent = sequence;
    push(std::max(0.0, std::min(endUs, sliceUs) - now), endUs <= sliceUs ? EventKind::kernelDone : EventKind::sliceOver,
         s, stage.work.action, stage.work.position);
  }

  void note(uint32_t s, Work work, double startUs, double endUs) {
    if (record)
      record->push_back(
          {chunkAt(s, work.action).tasks[work.position], program.actions[s][work.action].microbatch, startUs, endUs});
  }

  /// A collective or a send has had its lane to its end.
  void endTransfer(uint32_t s, Work work) {
    const Task &task = plan.tasks[chunkAt(s, work.action).tasks[work.position]];
    if (const plan::Send *send = task.as<plan::Send>())
      push(durations.linkBetweenStages(s, send->peerStage).latencyUs, EventKind::arrival, send->peerStage, 0, 0,
           {send->channel, program.actions[s][work.action].microbatch});
    else
      completeTransfer(s, work.action, work.position);
  }

  void push(double afterUs, EventKind kind, uint32_t s, size_t action, uint32_t position,
            std::pair<uint32_t, uint32_t> message = {}) {
    events.push({now + afterUs, sequence++, kind, s, action, position, message});
  }

  void handle(const Event &event) {
    Stage &stage = stages[event.stage];
    switch (event.kind) {
    case EventKind::kernelDone: {
      const Work work = stage.work;
      setActive(stage, stage.isComputing, false);
      note(event.stage, work, *stage.startUs, now);
      if (isCommunication(plan.tasks[chunkAt(event.stage, work.action).tasks[work.position]].kind()))
        endTransfer(event.stage, work);
      else
        completeTask(event.stage, work.position);
      break;
    }
    case EventKind::sliceOver:
      stage.leftUs -= now - stage.resumedUs;
      cores.leave(event.stage);
      cores.ask(event.stage);
      giveCores();
      return;
    case EventKind::leave:
      cores.leave(event.stage);
      giveCores();
      return;
    case EventKind::commDone:
      setActive(stage, stage.isCommunicating, false);
      endTransfer(event.stage, {event.action, event.position});
      break;
    case EventKind::arrival:
      if (auto found = stage.expected.find(event.message); found != stage.expected.end()) {
        uint32_t position = found->second;
        stage.expected.erase(found);
        completeTransfer(event.stage, stage.action, position);
      } else {
        stage.arrived.insert(event.message);
      }
      break;
    }
    endUs = now;
    proceed(event.stage);
    // Who has nothing to do looks for news for a while, and then leaves its cores to others.
    if (event.kind == EventKind::kernelDone && cores.isShared() && !stage.isComputing) {
      stage.coreEvent = sequence;
      push(turnUs, EventKind::leave, event.stage, event.action, event.position);
    }
  }

  Status checkFinished(uint32_t s) const {
    const Stage &stage = stages[s];
    if (stage.action == program.actions[s].size())
      return Status::ok();
    std::string waiting = "a task of another stage";
    for (auto [message, position] : stage.expected)
      waiting = fmt::format("receive '{}'", plan.tasks[chunkAt(s, stage.action).tasks[position]].name);
    return Status::error(ErrorKind::badInput,
                         "plan: program '{}' cannot finish: stage {} waits in its action {} (micro-batch {}) for {}, "
                         "which never comes; compile the job again",
                         nameOf(program.kind), s, stage.action, actionOf(s).microbatch, waiting);
  }

  plan::Predicted summarise() const {
    plan::Predicted predicted;
    predicted.stepUs = endUs;
    double activeUs = 0;
    for (const Stage &stage : stages) {
      activeUs += stage.activeUs;
      if (stage.computeUs > predicted.computeUs || &stage == &stages.front()) {
        predicted.computeUs = stage.computeUs;
        predicted.commUs = stage.commUs;
      }
    }
    if (endUs > 0)
      predicted.bubble = std::max(0.0, 1 - activeUs / (double(stages.size()) * endUs));
    for (const plan::StageMemory &memory : plan.memory)
      predicted.peakBytes.push_back(memory.arenaBytes);
    return predicted;
  }

  const Plan &plan;
  const Program &program; ///< of one replica
  TaskDurations durations;
  std::vector<SimulatedTask> *const record; ///< may be null
  std::vector<PreparedChunk> chunks;        ///< by ChunkId; empty if no action names it
  std::vector<Stage> stages;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  CoreQueue cores;
  const double turnUs; ///< until shared cores have gone from one stage to the next
  uint64_t sequence = 0;
  double now = 0, endUs = 0; ///< until a task was last complete
};

} // namespace

Result<plan::Predicted> simulateProgram(const Plan &plan, const Program &program, const CostModel &costs,
                                        std::vector<SimulatedTask> *tasks) {
  const Cluster &cluster = costs.cluster();
  if (plan.mesh.numRanks() > int64_t(cluster.numDevices()))
    return Status::error(ErrorKind::usage,
                         "the mesh has {} ranks, but cluster '{}' has {} devices ({} nodes of {}); "
                         "use a smaller mesh or more nodes",
                         plan.mesh.numRanks(), cluster.name, cluster.numDevices(), cluster.numNodes,
                         cluster.devicesPerNode);
  if (program.dealt.empty())
    return Simulation(plan, program, costs, tasks).run();
  // Replicas do the same at the same time; the one with the most micro-batches is the last to come to the update.
  const Program longest = plan::programOf(plan, program, plan::longestReplica(program));
  return Simulation(plan, longest, costs, tasks).run();
}

Result<plan::Predicted> simulate(const Plan &plan, const CostModel &costs) {
  if (plan.programs.empty())
    return Status::error(ErrorKind::badInput, "plan: no program to simulate; compile the job again");
  const Program *program = plan.findProgram(plan::ProgramKind::train);
  return simulateProgram(plan, program ? *program : plan.programs.front(), costs);
}

} // namespace dg::partitioner
