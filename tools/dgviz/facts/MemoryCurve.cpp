// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/MemoryCurve.h"
#include "tools/dgviz/FlowGraph.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

Holding holdingOf(ValueKind kind) {
  switch (kind) {
  case ValueKind::parameter:
    return Holding::parameters;
  case ValueKind::state:
    return Holding::optimizer;
  case ValueKind::activation:
    return Holding::activations;
  case ValueKind::gradient:
  case ValueKind::accumulator:
    return Holding::gradients;
  default:
    return Holding::buffers;
  }
}

uint64_t MemoryPoint::total() const { return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0)); }

namespace {

constexpr size_t maxPoints = 480;

struct Life {
  double startUs, endUs;
  ValueId value;
  uint32_t microbatch;
};

class CurveBuilder {
public:
  CurveBuilder(const Plan &plan, const Program &program, const Timeline &predicted)
      : plan(plan), program(program), predicted(predicted) {}

  std::vector<MemoryCurve> build() {
    findLives();
    std::vector<std::vector<Life>> byStage(program.actions.size());
    for (const auto &[place, lives] : places)
      mergeInto(byStage[std::get<0>(place)], lives);
    std::vector<MemoryCurve> curves;
    for (const std::vector<Life> &lives : byStage)
      curves.push_back(sweep(lives));
    return curves;
  }

private:
  using Place = std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>; ///< stage, offset, bytes, micro-batch

  void findLives() {
    std::map<std::pair<TaskId, uint32_t>, std::pair<double, double>> times;
    for (const TimelineEvent &event : predicted.events)
      times[{event.task, event.microbatch}] = {event.startUs, event.endUs};
    std::vector<double> reached(program.actions.size(), 0);
    for (uint32_t stage = 0; stage < program.actions.size(); ++stage)
      for (const Action &action : program.actions[stage]) {
        double startUs = reached[stage], last = startUs;
        for (TaskId id : plan.chunks[action.chunk].tasks) {
          const Task &task = plan.tasks[id];
          // A receive has no time of its own: its buffer is held from the start of the action. A finish touches what
          // its communication did, when that is over.
          auto found = times.find({task.as<Finish>() ? task.as<Finish>()->task : id, action.microbatch});
          auto [from, to] = found == times.end() ? std::pair(startUs, startUs) : found->second;
          last = std::max(last, to);
          for (ValueId value : valuesOf(startOf(plan, task)))
            touch(value, action.microbatch, from, to);
        }
        reached[stage] = last;
      }
    for (ValueId id = 0; id < plan.values.size(); ++id)
      if (ValueKind kind = plan.values[id].kind;
          plan.values[id].stage < program.actions.size() &&
          (kind == ValueKind::parameter || kind == ValueKind::state || kind == ValueKind::constant))
        touch(id, 0, 0, predicted.totalUs);
    for (const auto &[key, life] : lives) {
      const Value &value = plan.values[key.first];
      places[{value.stage, value.offset, value.bytes, value.slots > 1 ? key.second % value.slots : 0}].push_back(
          {life.first, life.second, key.first, key.second});
    }
  }

  void touch(ValueId id, uint32_t microbatch, double from, double to) {
    ValueKind kind = plan.values[id].kind;
    // What is summed over the step, or kept, is one tensor whatever the micro-batch.
    if (kind != ValueKind::activation && kind != ValueKind::gradient && kind != ValueKind::scratch &&
        kind != ValueKind::input)
      microbatch = 0;
    if (kind == ValueKind::input)
      from = 0;
    auto [found, isNew] = lives.try_emplace({id, microbatch}, std::pair(from, to));
    found->second = {std::min(found->second.first, from), std::max(found->second.second, to)};
  }

  /// Lives at one place that overlap are one: views of each other, or an op in place.
  static void mergeInto(std::vector<Life> &merged, std::vector<Life> lives) {
    std::sort(lives.begin(), lives.end(), [](const Life &a, const Life &b) { return a.startUs < b.startUs; });
    size_t first = merged.size();
    for (const Life &life : lives)
      if (merged.size() > first && life.startUs <= merged.back().endUs)
        merged.back().endUs = std::max(merged.back().endUs, life.endUs);
      else
        merged.push_back(life);
  }

  MemoryCurve sweep(const std::vector<Life> &lives) const {
    // Ends come before starts of the same moment: the next tensor may have the place of the last.
    std::vector<std::tuple<double, bool, size_t>> moments;
    for (size_t i = 0; i < lives.size(); ++i) {
      moments.push_back({lives[i].startUs, true, i});
      if (lives[i].endUs < predicted.totalUs)
        moments.push_back({lives[i].endUs, false, i});
    }
    std::sort(moments.begin(), moments.end());
    MemoryCurve curve;
    MemoryPoint now;
    std::vector<MemoryPoint> all;
    for (size_t i = 0; i < moments.size(); ++i) {
      const auto &[time, begins, index] = moments[i];
      const Value &value = plan.values[lives[index].value];
      uint64_t &bytes = now.bytes[size_t(holdingOf(value.kind))];
      bytes = begins ? bytes + value.bytes : bytes - value.bytes;
      now.timeUs = time;
      if (i + 1 < moments.size() && std::get<0>(moments[i + 1]) == time)
        continue;
      all.push_back(now);
      if (now.total() > curve.peak.total())
        curve.peak = now;
    }
    thin(all, curve);
    for (const Life &life : lives)
      if (life.startUs <= curve.peak.timeUs && (life.endUs > curve.peak.timeUs || life.endUs >= predicted.totalUs))
        curve.atPeak.push_back({life.value, life.microbatch, plan.values[life.value].bytes});
    std::sort(curve.atPeak.begin(), curve.atPeak.end(), [](const LiveTensor &a, const LiveTensor &b) {
      return std::tie(b.bytes, a.value, a.microbatch) < std::tie(a.bytes, b.value, b.microbatch);
    });
    return curve;
  }

  /// Of each slice of the step only the highest point is kept.
  void thin(const std::vector<MemoryPoint> &all, MemoryCurve &curve) const {
    size_t slice = maxPoints;
    for (const MemoryPoint &point : all) {
      auto own = size_t(point.timeUs / std::max(predicted.totalUs, 1e-9) * (maxPoints - 1));
      if (all.size() <= maxPoints || own != slice || curve.points.empty())
        curve.points.push_back(point);
      else if (point.total() > curve.points.back().total())
        curve.points.back() = point;
      slice = own;
    }
  }

  const Plan &plan;
  const Program &program;
  const Timeline &predicted;
  std::map<std::pair<ValueId, uint32_t>, std::pair<double, double>> lives; ///< by value and micro-batch
  std::map<Place, std::vector<Life>> places;
};

} // namespace

std::vector<MemoryCurve> memoryCurves(const Plan &plan, const Program &program, const Timeline &predicted) {
  return CurveBuilder(plan, program, predicted).build();
}

} // namespace dg::viz
