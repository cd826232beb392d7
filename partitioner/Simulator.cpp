// SPDX-License-Identifier: Apache-2.0
// A queue of events (kernel done, communication done, message arrived). A stage runs one chunk instance at a time;
// inside it a kernel starts when its dependencies are complete and the compute lane is free, the earliest in the chunk
// first. A message is sent eagerly: it travels whether or not the receiver has posted its receive. Links are not shared
// between stages. O(T log T) for T task instances.
#include "partitioner/Simulator.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

namespace dg::partitioner {

namespace {

using plan::ChunkId;
using plan::Plan;
using plan::Program;
using plan::Task;
using plan::TaskId;
using plan::TaskKind;

bool isCollective(TaskKind kind) {
  return kind == TaskKind::allReduce || kind == TaskKind::allGather || kind == TaskKind::reduceScatter ||
         kind == TaskKind::broadcast;
}

/// Durations of tasks, from the cost model and the place of the stages on the cluster.
class Durations {
public:
  Durations(const Plan &plan, const CostModel &costs) : plan(plan), costs(costs) {}

  struct Cost {
    double computeUs = 0, commUs = 0;
  };

  /// What one task costs on its lane. A loop is its body's tasks one after another, trips times.
  Result<Cost> of(const Task &task, size_t depth = 0) {
    if (isCollective(task.kind))
      return Cost{0, collectiveUs(task)};
    switch (task.kind) {
    case TaskKind::send:
    case TaskKind::receive:
    case TaskKind::finish:
      return Cost{};
    case TaskKind::loop:
      return loopCost(task, depth);
    default:
      return Cost{costs.kernelUs(task.flops, bytesOf(task), typeOf(task), task.op), 0};
    }
  }

  double bytesOfBuffer(const Task &task, size_t index) const {
    return index < task.buffers.size() ? double(plan.values[task.buffers[index]].bytes) : 0;
  }

  /// The slowest link between the ranks of two stages with equal data and tensor coordinates.
  const Link &linkBetweenStages(uint32_t from, uint32_t to) {
    auto [found, isNew] = links.try_emplace({from, to}, nullptr);
    if (isNew) {
      const int64_t ranksPerStage = plan.mesh.numRanks() / plan.numStages();
      for (int64_t i = 0; i < ranksPerStage; ++i) {
        const Link &link = costs.linkBetween(from * ranksPerStage + i, to * ranksPerStage + i);
        if (!found->second || link.bytesPerSecond < found->second->bytesPerSecond)
          found->second = &link;
      }
    }
    return *found->second;
  }

private:
  double collectiveUs(const Task &task) {
    Group group = groupOf(task);
    double bytes = bytesOfBuffer(task, task.kind == TaskKind::allGather ? 1 : 0);
    return costs.collectiveUs(task.kind, costs.bestAlgorithm(task.kind, group, bytes), group, bytes);
  }

  /// The group of the stage that stands on the most nodes: the others wait for it.
  Group groupOf(const Task &task) {
    auto [found, isNew] = groups.try_emplace({task.stage, task.axis}, Group{});
    if (isNew) {
      const int64_t ranksPerStage = plan.mesh.numRanks() / plan.numStages();
      for (int64_t i = 0; i < ranksPerStage; ++i) {
        int64_t rank = task.stage * ranksPerStage + i;
        std::vector<int64_t> ranks = plan.mesh.groupOf(rank, task.axis);
        if (ranks.empty() || ranks.front() != rank)
          continue;
        if (Group group = costs.groupOf(ranks); group.numNodes >= found->second.numNodes)
          found->second = group;
      }
    }
    return found->second;
  }

  double bytesOf(const Task &task) const {
    if (task.bytes > 0 || task.kind == TaskKind::kernel)
      return task.bytes;
    double bytes = 0; // zero writes one buffer; copy and slice read and write the smaller one
    for (size_t i = 0; i < task.buffers.size(); ++i)
      bytes = i == 0 ? bytesOfBuffer(task, i) : std::min(bytes, bytesOfBuffer(task, i));
    return task.kind == TaskKind::zero ? bytes : 2 * bytes;
  }

  plan::DType typeOf(const Task &task) const {
    if (!task.writes.empty())
      return plan.values[task.writes.front()].dtype;
    return task.buffers.empty() ? plan::DType::f32 : plan.values[task.buffers.back()].dtype;
  }

  Result<Cost> loopCost(const Task &task, size_t depth) {
    if (depth > plan.chunks.size())
      return Status::error(ErrorKind::badInput, "plan: loop '{}' of stage {} contains itself; compile the job again",
                           task.name, task.stage);
    Cost total;
    for (TaskId id : plan.chunks[task.body].tasks) {
      const Task &inner = plan.tasks[id];
      if (inner.kind == TaskKind::send || inner.kind == TaskKind::receive)
        return Status::error(ErrorKind::badInput,
                             "plan: task '{}' sends or receives inside loop '{}'; only chunks may do that", inner.name,
                             task.name);
      Result<Cost> cost = of(inner, depth + 1);
      if (!cost)
        return cost.status();
      total.computeUs += task.trips * cost->computeUs;
      total.commUs += task.trips * cost->commUs;
    }
    return total;
  }

  const Plan &plan;
  const CostModel &costs;
  std::map<std::pair<uint32_t, uint32_t>, const Link *> links;
  std::map<std::pair<uint32_t, std::string>, Group> groups;
};

/// A chunk with what every instance of it needs; tasks are named by their position in the chunk.
struct PreparedChunk {
  std::vector<TaskId> tasks;
  std::vector<Durations::Cost> cost;
  std::vector<uint32_t> numDeps;
  std::vector<std::vector<uint32_t>> dependents; ///< by dependency
  std::vector<std::vector<uint32_t>> finishers;  ///< of a communication task
};

class Simulation {
public:
  Simulation(const Plan &plan, const Program &program, const CostModel &costs, std::vector<SimulatedTask> *record)
      : plan(plan), program(program), durations(plan, costs), record(record), stages(program.actions.size()),
        ranksOnCore(program.actions.size()) {
    const Cluster &cluster = costs.cluster();
    const int64_t perNode = cluster.devicesPerNode, cores = cluster.coresPerNode;
    if (cores == 0 || std::min(plan.mesh.numRanks(), perNode) <= cores)
      return;
    // Who waits keeps its place in the queue of its core, so the system sees no reason to move anyone: a rank stays on
    // the core where it began, and ranks are dealt out in turn.
    isSharing = true;
    turnUs = cluster.turnUs;
    const int64_t ranksPerStage = plan.mesh.numRanks() / int64_t(std::max<size_t>(1, plan.numStages()));
    for (size_t s = 0; s < stages.size(); ++s)
      for (int64_t rank = int64_t(s) * ranksPerStage; rank < int64_t(s + 1) * ranksPerStage; ++rank)
        ++ranksOnCore[s][rank / perNode * cores + rank % perNode % cores];
  }

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
      if (event.kind == EventKind::kernelDone && event.sequence != stages[event.stage].doneEvent)
        continue; // its time was moved
      now = event.timeUs;
      handle(event);
    }
    for (uint32_t s = 0; s < stages.size(); ++s)
      DG_RETURN_IF_ERROR(checkFinished(s));
    return summarise();
  }

private:
  enum class EventKind { kernelDone, commDone, arrival, turn };
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
  struct Transfer { ///< a collective or a send that waits for the communication lane
    size_t action;
    uint32_t position;
    auto operator<=>(const Transfer &) const = default;
  };
  struct Stage {
    size_t action = 0; ///< the instance that runs
    std::vector<uint32_t> numWaiting;
    size_t numLeft = 0;
    std::vector<uint32_t> ready; ///< dependencies complete, not yet issued
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> readyKernels;
    std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> readyTransfers;
    bool isComputing = false, isCommunicating = false;
    double leftUs = 0;      ///< of the kernel that runs, on a core of its own
    uint64_t doneEvent = 0; ///< sequence of the event that ends it; earlier ones are void
    uint32_t position = 0;  ///< of the kernel that runs
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
      Result<Durations::Cost> cost = durations.of(task);
      if (!cost)
        return cost.status();
      chunk.cost.push_back(*cost);
      for (TaskId dep : task.deps)
        if (auto found = positionOf.find(dep); found != positionOf.end()) {
          chunk.dependents[found->second].push_back(i);
          ++chunk.numDeps[i];
        }
      if (task.kind != TaskKind::finish)
        continue;
      if (auto found = positionOf.find(task.finishes); found != positionOf.end()) {
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
    if (task.kind == TaskKind::receive) {
      std::pair<uint32_t, uint32_t> message{task.channel, actionOf(s).microbatch};
      if (stage.arrived.erase(message)) // nobody has waited
        release(s, chunkAt(s, stage.action).finishers[position]);
      else
        stage.expected[message] = position;
      completeTask(s, position);
    } else if (task.kind == TaskKind::send || isCollective(task.kind)) {
      stage.readyTransfers.push({stage.action, position});
      completeTask(s, position);
    } else if (task.kind == TaskKind::finish) {
      completeTask(s, position);
    } else {
      stage.readyKernels.push(position);
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

  /// A collective is over or a message is here: its finish tasks may go. The instance may be over if nobody waited. A
  /// rank that shares its core and has nothing else to do has left it to another, and goes on when it gets it back.
  void completeTransfer(uint32_t s, size_t action, uint32_t position) {
    const Stage &stage = stages[s];
    if (stage.action != action)
      return;
    if (turnUs > 0 && !stage.isComputing && stage.readyKernels.empty())
      push(turnUs, EventKind::turn, s, action, position);
    else
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
    if (!stage.isComputing && !stage.readyKernels.empty()) {
      uint32_t position = stage.readyKernels.top();
      stage.readyKernels.pop();
      const Durations::Cost &cost = chunkAt(s, stage.action).cost[position];
      stage.computeUs += cost.computeUs;
      stage.commUs += cost.commUs;
      work();
      setActive(stage, stage.isComputing, true);
      stage.leftUs = cost.computeUs + cost.commUs;
      stage.position = position;
      retime(s);
      note(s, stage.action, position, cost.computeUs + cost.commUs);
    }
    if (!stage.isCommunicating && !stage.readyTransfers.empty()) {
      Transfer transfer = stage.readyTransfers.top();
      stage.readyTransfers.pop();
      const PreparedChunk &chunk = chunkAt(s, transfer.action);
      const Task &task = plan.tasks[chunk.tasks[transfer.position]];
      double busyUs = chunk.cost[transfer.position].commUs;
      if (task.kind == TaskKind::send) {
        const Link &link = durations.linkBetweenStages(s, task.peerStage);
        busyUs = durations.bytesOfBuffer(task, 0) / link.bytesPerSecond * 1e6;
        push(busyUs + link.latencyUs, EventKind::arrival, task.peerStage, 0, 0,
             {task.channel, program.actions[s][transfer.action].microbatch});
      }
      stage.commUs += busyUs;
      setActive(stage, stage.isCommunicating, true);
      push(busyUs, EventKind::commDone, s, transfer.action, transfer.position);
      note(s, transfer.action, transfer.position, busyUs);
    }
  }

  /// Ranks that compute on one core share it, and a stage is as fast as its slowest rank.
  double speedOf(const Stage &stage) const {
    uint32_t most = 1;
    for (const auto &[core, own] : ranksOnCore[size_t(&stage - stages.data())]) {
      uint32_t sharing = 0;
      for (size_t other = 0; other < stages.size(); ++other)
        if (auto found = ranksOnCore[other].find(core); stages[other].isComputing && found != ranksOnCore[other].end())
          sharing += found->second;
      most = std::max(most, sharing);
    }
    return 1.0 / most;
  }

  /// Brings what the running kernels have left up to now.
  void work() {
    if (isSharing)
      for (Stage &stage : stages)
        stage.leftUs -= stage.isComputing ? (now - workedUntil) * speedOf(stage) : 0;
    workedUntil = now;
  }

  /// After a kernel began (on stage `begun`) or ended: the others' ends move where cores are shared.
  void retime(uint32_t begun) {
    for (uint32_t s = 0; s < stages.size(); ++s)
      if (stages[s].isComputing && (s == begun || isSharing)) {
        stages[s].doneEvent = sequence;
        push(std::max(0.0, stages[s].leftUs) / speedOf(stages[s]), EventKind::kernelDone, s, stages[s].action,
             stages[s].position);
      }
  }

  void note(uint32_t s, size_t action, uint32_t position, double busyUs) {
    if (record)
      record->push_back({chunkAt(s, action).tasks[position], program.actions[s][action].microbatch, now, now + busyUs});
  }

  void push(double afterUs, EventKind kind, uint32_t s, size_t action, uint32_t position,
            std::pair<uint32_t, uint32_t> message = {}) {
    events.push({now + afterUs, sequence++, kind, s, action, position, message});
  }

  void handle(const Event &event) {
    Stage &stage = stages[event.stage];
    switch (event.kind) {
    case EventKind::kernelDone:
      work();
      setActive(stage, stage.isComputing, false);
      if (isSharing)
        retime(UINT32_MAX);
      completeTask(event.stage, event.position);
      break;
    case EventKind::commDone:
      setActive(stage, stage.isCommunicating, false);
      if (isCollective(plan.tasks[chunkAt(event.stage, event.action).tasks[event.position]].kind))
        completeTransfer(event.stage, event.action, event.position);
      break;
    case EventKind::turn:
      release(event.stage, chunkAt(event.stage, event.action).finishers[event.position]);
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
    proceed(event.stage);
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
                         program.name, s, stage.action, actionOf(s).microbatch, waiting);
  }

  plan::Predicted summarise() const {
    plan::Predicted predicted;
    predicted.stepUs = now;
    double activeUs = 0;
    for (const Stage &stage : stages) {
      activeUs += stage.activeUs;
      if (stage.computeUs > predicted.computeUs || &stage == &stages.front()) {
        predicted.computeUs = stage.computeUs;
        predicted.commUs = stage.commUs;
      }
    }
    if (now > 0)
      predicted.bubble = std::max(0.0, 1 - activeUs / (double(stages.size()) * now));
    for (const plan::StageMemory &memory : plan.memory)
      predicted.peakBytes.push_back(memory.arenaBytes);
    return predicted;
  }

  const Plan &plan;
  const Program &program;
  Durations durations;
  std::vector<SimulatedTask> *const record; ///< may be null
  std::vector<PreparedChunk> chunks;        ///< by ChunkId; empty if no action names it
  std::vector<Stage> stages;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  bool isSharing = false;                               ///< there are more ranks than cores
  double turnUs = 0;                                    ///< until a core comes back to a rank that has waited
  std::vector<std::map<int64_t, uint32_t>> ranksOnCore; ///< by stage and core, where cores are shared
  uint64_t sequence = 0;
  double now = 0, workedUntil = 0;
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
  return Simulation(plan, program, costs, tasks).run();
}

Result<plan::Predicted> simulate(const Plan &plan, const CostModel &costs) {
  if (plan.programs.empty())
    return Status::error(ErrorKind::badInput, "plan: no program to simulate; compile the job again");
  const Program *program = plan.findProgram("train");
  return simulateProgram(plan, program ? *program : plan.programs.front(), costs);
}

} // namespace dg::partitioner
