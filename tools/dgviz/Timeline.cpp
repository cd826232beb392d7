// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/Timeline.h"
#include "tools/dgviz/FlowGraph.h"

#include "partitioner/Simulator.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace dg::viz {

using namespace dg::plan;

const char *nameOf(Work work) {
  static constexpr const char *names[] = {"forward", "input gradient", "weight gradient",
                                          "update",  "communication",  "other"};
  return names[size_t(work)];
}

namespace {

/// Per value: whether it is summed over micro-batches, or read by an update.
std::vector<bool> findUpdateInputs(const Plan &plan) {
  std::vector<bool> found(plan.values.size());
  for (ValueId id = 0; id < plan.values.size(); ++id)
    found[id] = plan.values[id].kind == ValueKind::accumulator;
  for (const Chunk &chunk : plan.chunks)
    if (chunk.phase == Phase::update)
      for (TaskId task : chunk.tasks)
        for (ValueId value : plan.tasks[task].reads)
          found[value] = true;
  return found;
}

/// The layer that an op belongs to: its name up to the slash.
std::string_view layerOf(const Task &task) { return std::string_view(task.name).substr(0, task.name.find('/')); }

/// Who reads a value later in its chunk.
struct Readers {
  bool makeInputGradients = false;
  std::string_view layer;
};

bool isForWeights(const Task &task, const std::vector<bool> &isUpdateInput, const std::map<ValueId, Readers> &readers) {
  for (ValueId value : task.writes) {
    if (isUpdateInput[value])
      continue;
    auto found = readers.find(value);
    if (found == readers.end() || found->second.makeInputGradients || found->second.layer != layerOf(task))
      return false;
  }
  return !task.writes.empty();
}

} // namespace

std::vector<Work> workOf(const Plan &plan) {
  std::vector<Work> work(plan.tasks.size(), Work::other);
  std::vector<bool> isUpdateInput = findUpdateInputs(plan);
  for (const Chunk &chunk : plan.chunks) {
    std::map<ValueId, Readers> readers;
    for (size_t i = chunk.tasks.size(); i-- > 0;) {
      TaskId id = chunk.tasks[i];
      const Task &task = plan.tasks[id];
      bool forWeights = isForWeights(task, isUpdateInput, readers);
      for (ValueId value : task.reads) {
        Readers &known = readers.try_emplace(value, Readers{false, layerOf(task)}).first->second;
        known.makeInputGradients |= !forWeights || known.layer != layerOf(task);
      }
      if (isCommunication(task.kind) || task.kind == TaskKind::finish)
        work[id] = Work::communication;
      else if (chunk.phase == Phase::forward)
        work[id] = Work::forward;
      else if (chunk.phase == Phase::update)
        work[id] = Work::update;
      else if (chunk.phase == Phase::backward)
        work[id] = forWeights ? Work::weightGradient : Work::inputGradient;
    }
  }
  return work;
}

Result<Timeline> predictTimeline(const Plan &plan, const Program &program, const partitioner::CostModel &costs) {
  std::vector<partitioner::SimulatedTask> tasks;
  Result<Predicted> predicted = partitioner::simulateProgram(plan, program, costs, &tasks);
  if (!predicted)
    return predicted.status();
  Timeline timeline;
  timeline.numRows = uint32_t(program.actions.size());
  if (program.name == "train" && plan.predicted.stepUs > 0 && predicted->stepUs > 0)
    timeline.scale = plan.predicted.stepUs / predicted->stepUs;
  timeline.totalUs = predicted->stepUs * timeline.scale;
  for (const partitioner::SimulatedTask &task : tasks)
    timeline.events.push_back({task.task, task.microbatch, plan.tasks[task.task].stage,
                               isCommunication(plan.tasks[task.task].kind) ? 1u : 0u, task.startUs * timeline.scale,
                               task.endUs * timeline.scale});
  return timeline;
}

namespace {

/// Time covered by intervals that were added in the order of their starts.
class Coverage {
public:
  void add(double start, double end) {
    covered += std::max(0.0, end - std::max(start, reached));
    reached = std::max(reached, end);
  }
  double total() const { return covered; }

private:
  double covered = 0, reached = 0;
};

} // namespace

std::vector<RowTimes> rowTimes(const Plan &plan, const Timeline &timeline) {
  std::vector<Coverage> compute(timeline.numRows), busy(timeline.numRows);
  for (const TimelineEvent &event : timeline.events) {
    busy[event.row].add(event.startUs, event.endUs);
    TaskKind kind = plan.tasks[event.task].kind;
    if (!isCommunication(kind) && kind != TaskKind::finish)
      compute[event.row].add(event.startUs, event.endUs);
  }
  std::vector<RowTimes> rows;
  for (uint32_t row = 0; row < timeline.numRows; ++row)
    rows.push_back({compute[row].total(), std::max(0.0, busy[row].total() - compute[row].total()),
                    std::max(0.0, timeline.totalUs - busy[row].total())});
  return rows;
}

namespace {

class CriticalWalk {
public:
  CriticalWalk(const Plan &plan, Timeline &timeline) : plan(plan), timeline(timeline) {
    for (uint32_t i = 0; i < timeline.events.size(); ++i) {
      const TimelineEvent &event = timeline.events[i];
      uint32_t &at = eventOf.try_emplace(keyOf(event.row, event.task, event.microbatch), i).first->second;
      if (timeline.events[at].endUs < event.endUs)
        at = i;
    }
    for (TaskId id = 0; id < plan.tasks.size(); ++id)
      if (plan.tasks[id].kind == TaskKind::send)
        sends[{plan.tasks[id].stage, plan.tasks[id].channel}].push_back(id);
    endsByRow.resize(timeline.numRows);
    for (uint32_t i = 0; i < timeline.events.size(); ++i)
      endsByRow[timeline.events[i].row].push_back(i);
    for (std::vector<uint32_t> &row : endsByRow)
      std::sort(row.begin(), row.end(),
                [&](uint32_t a, uint32_t b) { return std::pair(endOf(a), a) < std::pair(endOf(b), b); });
  }

  CriticalPath run() {
    CriticalPath path;
    if (timeline.events.empty())
      return path;
    uint32_t at = 0;
    for (uint32_t i = 1; i < timeline.events.size(); ++i)
      if (endOf(i) > endOf(at))
        at = i;
    while (true) {
      TimelineEvent &event = timeline.events[at];
      event.isCritical = true;
      ++path.numEvents;
      uint32_t before = predecessorOf(event);
      double reachedUs = before == noId ? 0 : endOf(before);
      TaskKind kind = plan.tasks[event.task].kind;
      // Where measured ops overlap, only the part after the one before counts.
      double ownUs = event.endUs - std::max(event.startUs, reachedUs);
      (isCommunication(kind) || kind == TaskKind::finish ? path.communicationUs : path.computeUs) += ownUs;
      path.waitingUs += std::max(0.0, event.startUs - reachedUs);
      if (before == noId)
        return path;
      at = before;
    }
  }

private:
  static constexpr double toleranceUs = 1e-6;

  static uint64_t keyOf(uint32_t row, TaskId task, uint32_t microbatch) {
    return (uint64_t(task) << 32) ^ (uint64_t(microbatch) << 14) ^ row;
  }
  double endOf(uint32_t event) const { return timeline.events[event].endUs; }

  uint32_t predecessorOf(const TimelineEvent &event) const {
    uint32_t best = lastEnded(event);
    std::vector<TaskId> waiting = plan.tasks[event.task].deps;
    if (plan.tasks[event.task].kind == TaskKind::finish)
      waiting.push_back(plan.tasks[event.task].finishes);
    for (size_t i = 0; i < waiting.size() && waiting.size() < 64; ++i) {
      const Task &task = plan.tasks[waiting[i]];
      uint32_t found = find(event, waiting[i]);
      if (found == noId && task.kind == TaskKind::receive)
        found = findSend(event, task);
      if (found != noId && endOf(found) <= event.startUs + toleranceUs) {
        if (best == noId || endOf(found) >= endOf(best) - toleranceUs)
          best = found;
      } else if (found == noId) { // a task without a time of its own stands for what it waited for
        waiting.insert(waiting.end(), task.deps.begin(), task.deps.end());
        if (task.kind == TaskKind::finish)
          waiting.push_back(task.finishes);
      }
    }
    return best;
  }

  uint32_t find(const TimelineEvent &event, TaskId task) const {
    auto found = eventOf.find(keyOf(event.row, task, event.microbatch));
    return found == eventOf.end() ? noId : found->second;
  }

  /// The send that a receive waits for: on the other stage, at the same data and tensor coordinates.
  uint32_t findSend(const TimelineEvent &event, const Task &receive) const {
    auto senders = sends.find({receive.peerStage, receive.channel});
    if (senders == sends.end())
      return noId;
    int64_t perStage = plan.mesh.numRanks() / std::max<int64_t>(1, plan.numStages());
    bool isByStage = timeline.numRows == plan.numStages();
    auto row = isByStage ? receive.peerStage : uint32_t(receive.peerStage * perStage + event.row % perStage);
    for (TaskId send : senders->second)
      if (auto found = eventOf.find(keyOf(row, send, event.microbatch)); found != eventOf.end())
        return found->second;
    return noId;
  }

  /// Of the event's row: what ended last before it started.
  uint32_t lastEnded(const TimelineEvent &event) const {
    const std::vector<uint32_t> &row = endsByRow[event.row];
    auto after = std::upper_bound(row.begin(), row.end(), event.startUs + toleranceUs,
                                  [&](double time, uint32_t other) { return time < endOf(other); });
    while (after != row.begin()) {
      uint32_t candidate = *--after;
      if (&timeline.events[candidate] != &event && timeline.events[candidate].startUs < event.startUs)
        return candidate;
    }
    return noId;
  }

  const Plan &plan;
  Timeline &timeline;
  std::unordered_map<uint64_t, uint32_t> eventOf; ///< row, task and micro-batch → the event that ends last
  std::map<std::pair<uint32_t, uint32_t>, std::vector<TaskId>> sends; ///< by stage and channel
  std::vector<std::vector<uint32_t>> endsByRow;
};

} // namespace

CriticalPath markCriticalPath(const Plan &plan, Timeline &timeline) { return CriticalWalk(plan, timeline).run(); }

std::vector<double> meanTaskUs(const Plan &plan, const Timeline &timeline) {
  struct Span {
    double startUs, endUs;
  };
  std::map<std::tuple<TaskId, uint32_t, uint32_t>, Span> spans;
  for (const TimelineEvent &event : timeline.events) {
    auto [found, isNew] =
        spans.try_emplace({event.task, event.row, event.microbatch}, Span{event.startUs, event.endUs});
    found->second.endUs = std::max(found->second.endUs, event.endUs);
  }
  std::vector<double> sums(plan.tasks.size(), 0);
  std::vector<uint32_t> counts(plan.tasks.size(), 0);
  for (const auto &[key, span] : spans) {
    sums[std::get<0>(key)] += span.endUs - span.startUs;
    ++counts[std::get<0>(key)];
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = counts[i] ? sums[i] / counts[i] : -1;
  return sums;
}

} // namespace dg::viz
