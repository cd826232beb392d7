// SPDX-License-Identifier: Apache-2.0
// Sums over the plan, and numbers as text.
#include "tools/dgviz/facts/PlanNumbers.h"

#include "runtime/plan/TaskTraits.h"

#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

std::vector<std::vector<KindMemory>> memoryByKind(const Plan &plan) {
  std::vector<std::map<ValueKind, KindMemory>> byStage(plan.numStages());
  std::set<std::tuple<uint32_t, ValueKind, uint64_t, uint64_t>> seen;
  for (const Value &value : plan.values) {
    KindMemory &memory = byStage[value.stage][value.kind];
    memory.kind = nameOf(value.kind);
    ++memory.values;
    if (seen.insert({value.stage, value.kind, value.offset, value.bytes}).second)
      memory.bytes += value.slots > 1 ? value.stride * (value.slots - 1) + value.bytes : value.bytes;
  }
  std::vector<std::vector<KindMemory>> result;
  for (const auto &kinds : byStage) {
    result.emplace_back();
    for (const auto &[kind, memory] : kinds)
      result.back().push_back(memory);
  }
  return result;
}

std::vector<Traffic> trafficOf(const Plan &plan, const Program &program) {
  std::map<std::tuple<uint32_t, std::string, std::string>, Traffic> totals;
  for (uint32_t stage = 0; stage < program.actions.size(); ++stage)
    for (const Action &action : program.actions[stage])
      for (TaskId id : plan.chunks[action.chunk].tasks) {
        const Task &task = plan.tasks[id];
        if (!isCommunication(task.kind()) || task.as<Receive>())
          continue;
        std::string axis = nameOf(axisOf(task).value_or(Axis::pipe));
        Traffic &traffic = totals[{stage, nameOf(task.kind()), axis}];
        traffic.op = nameOf(task.kind());
        traffic.axis = axis;
        traffic.stage = stage;
        ++traffic.calls;
        traffic.bytes += movedBytes(plan, task);
      }
  std::vector<Traffic> result;
  for (const auto &[key, traffic] : totals)
    result.push_back(traffic);
  return result;
}

std::string bytesText(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, units[unit]);
}

std::string timeText(double microseconds) {
  if (microseconds < 1000)
    return fmt::format("{:.1f} µs", microseconds);
  if (microseconds < 1e6)
    return fmt::format("{:.2f} ms", microseconds / 1e3);
  return fmt::format("{:.2f} s", microseconds / 1e6);
}

std::string countText(double count) {
  const char *units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(units); ++unit)
    count /= 1000;
  return fmt::format("{:.{}f}{}", count, unit == 0 ? 0 : 2, units[unit]);
}

} // namespace dg::viz
