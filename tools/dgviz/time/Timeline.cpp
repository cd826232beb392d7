// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/time/Timeline.h"
#include "tools/dgviz/FlowGraph.h"

#include "partitioner/predict/Simulator.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

bool isPredictedProgram(const Plan &plan, const Program &program) {
  const Program *train = plan.findProgram(ProgramKind::train);
  return &program == (train ? train : &plan.programs.front());
}

Result<Timeline> predictTimeline(const Plan &plan, const Program &program, const partitioner::CostModel &costs,
                                 bool scalesToPlan) {
  std::vector<partitioner::SimulatedTask> tasks;
  Result<Predicted> predicted = partitioner::simulateProgram(plan, program, costs, &tasks);
  if (!predicted)
    return predicted.status();
  Timeline timeline;
  timeline.simulated = *predicted;
  timeline.numRows = uint32_t(program.actions.size());
  if (scalesToPlan && isPredictedProgram(plan, program) && plan.predicted.stepUs > 0 && predicted->stepUs > 0)
    timeline.scale = plan.predicted.stepUs / predicted->stepUs;
  timeline.totalUs = predicted->stepUs * timeline.scale;
  for (const partitioner::SimulatedTask &task : tasks)
    timeline.events.push_back({task.task, task.microbatch, plan.tasks[task.task].stage,
                               isCommunication(plan.tasks[task.task].kind()) ? 1u : 0u, task.startUs * timeline.scale,
                               task.endUs * timeline.scale});
  return timeline;
}

EventIndex::EventIndex(const Timeline &timeline) {
  for (uint32_t i = 0; i < timeline.events.size(); ++i) {
    const TimelineEvent &event = timeline.events[i];
    uint32_t &at = events.try_emplace({event.task, (uint64_t(event.microbatch) << 32) | event.row}, i).first->second;
    if (timeline.events[at].endUs < event.endUs)
      at = i;
  }
}

uint32_t EventIndex::find(uint32_t row, TaskId task, uint32_t microbatch) const {
  auto found = events.find({task, (uint64_t(microbatch) << 32) | row});
  return found == events.end() ? noId : found->second;
}

PeerIndex::PeerIndex(const Plan &plan, const Timeline &timeline, TaskKind kind)
    : plan(plan), isByStage(timeline.numRows == plan.numStages()) {
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (plan.tasks[id].kind() == kind)
      tasks[{plan.tasks[id].stage, channelOf(plan.tasks[id])}].push_back(id);
}

uint32_t PeerIndex::find(const EventIndex &events, uint32_t row, const Task &task, uint32_t microbatch) const {
  const uint32_t peerStage = peerStageOf(task);
  auto found = tasks.find({peerStage, channelOf(task)});
  if (found == tasks.end())
    return noId;
  auto there = [&] {
    if (isByStage)
      return peerStage;
    Coordinates at = plan.mesh.coordinatesOf(row);
    at.pipe = peerStage;
    return uint32_t(plan.mesh.rankOf(at));
  }();
  for (TaskId peer : found->second)
    if (uint32_t event = events.find(there, peer, microbatch); event != noId)
      return event;
  return noId;
}

void findMeetings(const Plan &plan, Timeline &timeline) {
  EventIndex index(timeline);
  PeerIndex sends(plan, timeline, TaskKind::send), receives(plan, timeline, TaskKind::receive);
  for (uint32_t i = 0; i < timeline.events.size(); ++i) {
    TimelineEvent &event = timeline.events[i];
    const Task &task = plan.tasks[event.task];
    double readyUs = event.startUs;
    auto meet = [&](uint32_t other) {
      if (other == noId || timeline.events[other].startUs <= readyUs)
        return;
      readyUs = timeline.events[other].startUs;
      event.awaited = other;
    };
    if (task.as<Send>()) {
      // Whoever receives later than that was not waited for: the message was put aside.
      uint32_t other = receives.find(index, event.row, task, event.microbatch);
      meet(other != noId && timeline.events[other].startUs < event.endUs ? other : noId);
    } else if (task.as<Receive>())
      meet(sends.find(index, event.row, task, event.microbatch));
    else if (isCollective(task.kind()))
      for (int64_t rank : plan.mesh.groupOf(event.row, *axisOf(task)))
        meet(index.find(uint32_t(rank), event.task, event.microbatch));
    event.waitUs = std::min(readyUs, event.endUs) - event.startUs;
  }
  for (TimelineEvent &event : timeline.events) {
    const Finish *finish = plan.tasks[event.task].as<Finish>();
    if (!finish)
      continue;
    if (uint32_t start = index.find(event.row, finish->task, event.microbatch); start != noId)
      event.waitUs = std::clamp(timeline.events[start].busyFromUs(), event.startUs, event.endUs) - event.startUs;
  }
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) { return a.startUs < b.startUs; });
  std::vector<Span> result;
  for (const Span &span : spans)
    if (!result.empty() && span.startUs <= result.back().endUs)
      result.back().endUs = std::max(result.back().endUs, span.endUs);
    else
      result.push_back(span);
  return result;
}

std::vector<BusyTimes> busyTimes(const Plan &plan, const Timeline &timeline) {
  std::vector<BusyTimes> rows(timeline.numRows);
  for (const TimelineEvent &event : timeline.events) {
    rows[event.row].all.push_back({event.busyFromUs(), event.endUs});
    if (!isCommunication(startOf(plan, plan.tasks[event.task]).kind()))
      rows[event.row].computing.push_back({event.startUs, event.endUs});
  }
  for (BusyTimes &row : rows)
    row = {merged(std::move(row.computing)), merged(std::move(row.all))};
  return rows;
}

std::vector<RowTimes> rowTimes(const Plan &plan, const Timeline &timeline) {
  auto lengthOf = [](const std::vector<Span> &spans) {
    double sum = 0;
    for (const Span &span : spans)
      sum += span.endUs - span.startUs;
    return sum;
  };
  std::vector<RowTimes> rows;
  for (const BusyTimes &row : busyTimes(plan, timeline)) {
    double computeUs = lengthOf(row.computing), busyUs = lengthOf(row.all);
    rows.push_back({computeUs, std::max(0.0, busyUs - computeUs), std::max(0.0, timeline.totalUs - busyUs)});
  }
  return rows;
}

std::vector<double> meanTaskUs(const Plan &plan, const Timeline &timeline) {
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
