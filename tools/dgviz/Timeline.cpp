// SPDX-License-Identifier: Apache-2.0
// A small simulation of the schedule on nominal rates; only proportions matter, because the result is scaled.
#include "tools/dgviz/Timeline.h"

#include <algorithm>
#include <map>

namespace dg::viz {

using namespace dg::plan;

namespace {

// Nominal rates of one core: 100 GFLOP/s, 10 GB/s of memory, 5 GB/s between ranks; 1 µs to start anything.
constexpr double flopsPerUs = 1e5, bytesPerUs = 1e4, linkBytesPerUs = 5e3, startUs = 1;

double durationOf(const Plan &plan, const Chunk &chunk) {
  double us = 0;
  for (TaskId id : chunk.tasks) {
    const Task &task = plan.tasks[id];
    switch (task.kind) {
    case TaskKind::allReduce:
    case TaskKind::allGather:
    case TaskKind::reduceScatter:
    case TaskKind::broadcast:
      us += startUs + double(plan.values[task.buffers[0]].bytes) / linkBytesPerUs;
      break;
    case TaskKind::loop:
      us += task.trips * durationOf(plan, plan.chunks[task.body]);
      break;
    case TaskKind::finish:
      break;
    default:
      us += startUs + task.flops / flopsPerUs + task.bytes / bytesPerUs;
    }
  }
  return us;
}

} // namespace

Timeline timelineOf(const Plan &plan, const Program &program) {
  Timeline timeline;
  timeline.stages.resize(program.actions.size());
  std::vector<double> durations;
  for (const Chunk &chunk : plan.chunks)
    durations.push_back(std::max(durationOf(plan, chunk), startUs));
  std::map<std::pair<uint32_t, uint32_t>, double> sentAt; // channel, micro-batch
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < program.actions.size(); ++stage) {
      std::vector<TimelineBar> &bars = timeline.stages[stage];
      while (bars.size() < program.actions[stage].size()) {
        const Action &action = program.actions[stage][bars.size()];
        double start = bars.empty() ? 0 : bars.back().endUs;
        bool ready = true;
        for (TaskId id : plan.chunks[action.chunk].tasks) {
          if (plan.tasks[id].kind != TaskKind::receive)
            continue;
          auto sent = sentAt.find({plan.tasks[id].channel, action.microbatch});
          ready = ready && sent != sentAt.end();
          if (ready)
            start =
                std::max(start, sent->second + double(plan.values[plan.tasks[id].buffers[0]].bytes) / linkBytesPerUs);
        }
        if (!ready)
          break;
        double end = start + durations[action.chunk];
        for (TaskId id : plan.chunks[action.chunk].tasks)
          if (plan.tasks[id].kind == TaskKind::send)
            sentAt[{plan.tasks[id].channel, action.microbatch}] = end;
        bars.push_back({action.chunk, action.microbatch, start, end});
        timeline.totalUs = std::max(timeline.totalUs, end);
        moved = true;
      }
    }
  }
  timeline.isToScale = program.name == "train" && plan.predicted.stepUs > 0 && timeline.totalUs > 0;
  double scale = timeline.isToScale ? plan.predicted.stepUs / timeline.totalUs : 1;
  for (std::vector<TimelineBar> &bars : timeline.stages)
    for (TimelineBar &bar : bars) {
      bar.startUs *= scale;
      bar.endUs *= scale;
    }
  timeline.totalUs *= scale;
  return timeline;
}

} // namespace dg::viz
