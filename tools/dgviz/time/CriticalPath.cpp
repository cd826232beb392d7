// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/time/CriticalPath.h"
#include "tools/dgviz/FlowGraph.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>

namespace dg::viz {

using namespace dg::plan;

namespace {

/// Deps that are followed through tasks without a time of their own, before the search is given up.
constexpr size_t maxFollowed = 64;
constexpr double toleranceUs = 1e-6;

class CriticalWalk {
public:
  CriticalWalk(const Plan &plan, Timeline &timeline)
      : plan(plan), timeline(timeline), index(timeline), sends(plan, timeline, TaskKind::send),
        endsByRow(timeline.numRows) {
    for (uint32_t i = 0; i < timeline.events.size(); ++i)
      if (!isMeasuredCommunication(timeline.events[i]))
        endsByRow[timeline.events[i].row].push_back(i);
    for (std::vector<uint32_t> &row : endsByRow)
      std::sort(row.begin(), row.end(),
                [&](uint32_t a, uint32_t b) { return std::pair(endOf(a), a) < std::pair(endOf(b), b); });
  }

  CriticalPath run() {
    path.taskUs.assign(plan.tasks.size(), 0);
    if (timeline.events.empty())
      return std::move(path);
    uint32_t at = 0;
    for (uint32_t i = 1; i < timeline.events.size(); ++i)
      if (endOf(i) > endOf(at))
        at = i;
    // `untilUs`: all after it is accounted for.
    double untilUs = endOf(at);
    while (at != noId && !timeline.events[at].isCritical) {
      timeline.events[at].isCritical = true;
      ++path.numEvents;
      Step step = stepFrom(at);
      account(at, step.untilUs, untilUs);
      if (step.next != noId && timeline.events[step.next].row != timeline.events[at].row)
        path.crossings.push_back(
            {timeline.events[step.next].row, timeline.events[at].row, std::min(untilUs, step.untilUs)});
      untilUs = std::min(untilUs, step.untilUs);
      at = step.next;
    }
    path.waitingUs += untilUs; // from the start of the step
    return std::move(path);
  }

private:
  struct Step {
    uint32_t next = noId;
    double untilUs = 0;
  };

  double endOf(uint32_t event) const { return timeline.events[event].endUs; }

  /// In a trace the communications of a row run beside each other; in a prediction they share one lane.
  bool isMeasuredCommunication(const TimelineEvent &event) const {
    return timeline.simulated.stepUs <= 0 && isCommunication(plan.tasks[event.task].kind());
  }

  /// The time between two points of the chain: what the event was busy with, and before its start nothing.
  void account(uint32_t at, double fromUs, double untilUs) {
    const TimelineEvent &event = timeline.events[at];
    double ownUs = std::max(0.0, untilUs - std::max(event.startUs, fromUs));
    bool communicates = isCommunication(startOf(plan, plan.tasks[event.task]).kind());
    (communicates ? path.communicationUs : path.computeUs) += ownUs;
    path.taskUs[event.task] += ownUs;
    path.waitingUs += std::max(0.0, std::min(untilUs, event.startUs) - fromUs);
  }

  Step stepFrom(uint32_t at) const {
    const TimelineEvent &event = timeline.events[at];
    if (event.awaited != noId) // from the moment in which the last rank took part
      return {event.awaited, event.busyFromUs()};
    const Task &task = plan.tasks[event.task];
    if (const Finish *finish = task.as<Finish>())
      if (uint32_t start = index.find(event.row, finish->task, event.microbatch);
          start != noId && endOf(start) > event.startUs + toleranceUs)
        return {start, endOf(start)};
    uint32_t before = predecessorOf(event);
    return before == noId ? Step{noId, event.startUs} : Step{before, endOf(before)};
  }

  uint32_t predecessorOf(const TimelineEvent &event) const {
    uint32_t best = lastEnded(event);
    std::vector<TaskId> waiting = plan.tasks[event.task].deps;
    if (const Finish *finish = plan.tasks[event.task].as<Finish>())
      waiting.push_back(finish->task);
    for (size_t i = 0; i < waiting.size() && waiting.size() < maxFollowed; ++i) {
      const Task &task = plan.tasks[waiting[i]];
      uint32_t found = index.find(event.row, waiting[i], event.microbatch);
      if (found == noId && task.as<Receive>())
        found = sends.find(index, event.row, task, event.microbatch);
      if (found != noId && endOf(found) <= event.startUs + toleranceUs) {
        if (best == noId || endOf(found) >= endOf(best) - toleranceUs)
          best = found;
      } else if (found == noId) { // a task without a time of its own stands for what it waited for
        waiting.insert(waiting.end(), task.deps.begin(), task.deps.end());
        if (const Finish *finish = task.as<Finish>())
          waiting.push_back(finish->task);
      }
    }
    return best;
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
  EventIndex index;
  PeerIndex sends;
  std::vector<std::vector<uint32_t>> endsByRow;
  CriticalPath path;
};

} // namespace

CriticalPath markCriticalPath(const Plan &plan, Timeline &timeline) { return CriticalWalk(plan, timeline).run(); }

} // namespace dg::viz
