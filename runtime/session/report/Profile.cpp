// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/Profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace dg::session {

/// More ops than this are summed up in one line.
static constexpr size_t maxRows = 40;

void Profile::add(plan::ProgramKind kind, const StepTrace &trace) {
  Program &program = programs[kind];
  if (++program.steps == 0)
    return;
  uint64_t first = UINT64_MAX, last = 0;
  for (size_t lane = 0; lane < trace.numLanes(); ++lane) {
    program.dropped += trace.dropped(lane);
    for (const TraceEvent &event : trace.events(lane)) {
      tasks[event.task].ns += event.endNs - event.startNs;
      tasks[event.task].calls += double(event.tiles) / event.taskTiles;
      first = std::min(first, event.startNs), last = std::max(last, event.endNs);
    }
  }
  program.ns += last > first ? last - first : 0;
}

std::string Profile::tableOf(plan::ProgramKind kind, const Program &program, double peakFlops) const {
  std::vector<plan::TaskId> order;
  uint64_t total = 0;
  for (const plan::Chunk &chunk : plan.chunks)
    if (plan.programs[chunk.program].kind == kind)
      for (plan::TaskId task : chunk.tasks)
        if (tasks[task].ns > 0)
          order.push_back(task), total += tasks[task].ns;
  std::sort(order.begin(), order.end(), [&](plan::TaskId a, plan::TaskId b) {
    return tasks[a].ns != tasks[b].ns ? tasks[a].ns > tasks[b].ns : a < b;
  });
  double steps = double(program.steps);
  std::string text =
      fmt::format("profile of {}: {:.1f} us a step from first to last task, {:.1f} us of thread time, "
                  "mean of {} steps; peak {:.1f} "
                  "GFLOP/s a thread\n{:>12} {:>7} {:>9} {:>7} {:>8}  {}\n",
                  nameOf(kind), double(program.ns) / 1e3 / steps, double(total) / 1e3 / steps, program.steps,
                  peakFlops / 1e9, "us/step", "share", "GFLOP/s", "of peak", "GB/s", "op");
  uint64_t rest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const plan::Task &task = plan.tasks[order[i]];
    const Sum &sum = tasks[order[i]];
    if (i >= maxRows) {
      rest += sum.ns;
      continue;
    }
    // Flops and bytes are of one call; a call is all the tiles of the task.
    double calls = sum.calls, seconds = double(sum.ns) / 1e9;
    double flops = task.flops * calls / seconds, bytes = task.bytes * calls / seconds;
    text += fmt::format("{:12.1f} {:6.1f}% {:9.1f} {:6.1f}% {:8.1f}  {} ({}){}{}\n", double(sum.ns) / 1e3 / steps,
                        100 * double(sum.ns) / double(total), flops / 1e9, 100 * flops / peakFlops, bytes / 1e9,
                        task.name, task.op, task.source.empty() ? "" : " at ", task.source);
  }
  if (rest > 0)
    text += fmt::format("{:12.1f} {:6.1f}% {:>9} {:>7} {:>8}  {} others\n", double(rest) / 1e3 / steps,
                        100 * double(rest) / double(total), "", "", "", order.size() - maxRows);
  if (program.dropped > 0)
    text += fmt::format("{} events found no room and are not counted\n", program.dropped);
  return text;
}

std::string Profile::table(double peakFlops) const {
  std::string text;
  for (const auto &[kind, program] : programs)
    if (program.steps > 0)
      text += tableOf(kind, program, peakFlops);
  if (text.empty() && !programs.empty())
    text = "profile: one step is not enough, because the first does not count: give --steps 2 or more\n";
  return text;
}

} // namespace dg::session
