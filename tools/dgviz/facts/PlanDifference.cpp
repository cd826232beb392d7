// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/PlanDifference.h"
#include "tools/dgviz/facts/PlanNumbers.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

namespace {

using Key = std::tuple<Phase, std::string, uint32_t>;

struct Side {
  const Plan &plan;
  const ProgramView &view;
  std::map<Key, TaskId> ops;
  std::vector<double> totalUs; ///< per task, over the calls of a step

  Side(const Plan &plan, const ProgramView &view) : plan(plan), view(view), totalUs(plan.tasks.size(), 0) {
    std::map<std::pair<Phase, std::string>, uint32_t> seen;
    for (const FlowNode &node : view.flow.nodes)
      ops[{node.phase, node.name, seen[{node.phase, node.name}]++}] = node.item;
    for (const TimelineEvent &event : view.predicted.events)
      totalUs[event.task] += event.endUs - event.startUs;
  }

  std::string cutOf(const Task &task) const {
    const std::vector<ValueId> writes = writesOf(task);
    if (writes.empty())
      return "";
    const std::vector<std::optional<Axis>> &axes = plan.values[writes.front()].sharding;
    std::string text;
    for (size_t dim = 0; dim < axes.size(); ++dim)
      if (axes[dim] && plan.mesh.sizeOf(*axes[dim]) > 1)
        text += fmt::format("{}dimension {} over {}", text.empty() ? "" : " and ", dim, nameOf(*axes[dim]));
    return text;
  }
  std::string typeOf(const Task &task) const {
    const std::vector<ValueId> writes = writesOf(task);
    return writes.empty() ? "" : plan::nameOf(plan.values[writes.front()].dtype);
  }
};

std::string describe(const Side &before, const Task &a, const Side &after, const Task &b) {
  std::string text;
  auto note = [&](const char *what, const std::string &from, const std::string &to) {
    if (from != to)
      text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", what, from.empty() ? "whole" : from,
                          to.empty() ? "whole" : to);
  };
  note("stage", std::to_string(a.stage), std::to_string(b.stage));
  note("cut", before.cutOf(a), after.cutOf(b));
  note("type", before.typeOf(a), after.typeOf(b));
  if (a.kind() != b.kind())
    note("kind", plan::nameOf(a.kind()), plan::nameOf(b.kind()));
  return text;
}

std::vector<FigureChange> figureChanges(const Side &before, const Side &after) {
  const Figures &a = before.view.figures, &b = after.view.figures;
  return {{"step, predicted", Unit::time, a.stepUs, b.stepUs, true},
          {"computing", Unit::share, a.computeShare, b.computeShare, false},
          {"communication not hidden", Unit::share, a.exposedShare, b.exposedShare, true},
          {"waiting", Unit::share, a.idleShare, b.idleShare, true},
          {"utilisation", Unit::share, a.utilisation, b.utilisation, false},
          {"imbalance of stages", Unit::share, a.imbalance, b.imbalance, true},
          {"peak memory of a device", Unit::bytes, double(a.peakBytes), double(b.peakBytes), true},
          {"bytes between ranks", Unit::bytes, a.bytesMoved, b.bytesMoved, true},
          {"ranks", Unit::count, double(before.plan.mesh.numRanks()), double(after.plan.mesh.numRanks()), true},
          {"ops of a rank", Unit::count, double(before.ops.size()), double(after.ops.size()), true}};
}

std::vector<FigureChange> trafficChanges(const Side &before, const Side &after) {
  std::map<std::string, std::pair<double, double>> totals;
  auto addUp = [&](const Side &side, double std::pair<double, double>::*half) {
    double ranks = double(side.plan.mesh.numRanks()) / std::max<double>(1, side.plan.numStages());
    for (const CommunicationOp &op : side.view.communications)
      totals[fmt::format("{} · {}", plan::nameOf(side.plan.tasks[op.task].kind()), plan::nameOf(op.axis))].*half +=
          double(op.bytes) * op.calls * ranks;
  };
  addUp(before, &std::pair<double, double>::first);
  addUp(after, &std::pair<double, double>::second);
  std::vector<FigureChange> changes;
  for (const auto &[name, bytes] : totals)
    changes.push_back({name, Unit::bytes, bytes.first, bytes.second, true});
  return changes;
}

using Parameters = std::map<std::string, std::vector<int64_t>>; ///< by name, the global shapes

Parameters parametersOf(const Plan &plan) {
  Parameters parameters;
  for (const Value &value : plan.values)
    if (value.kind == ValueKind::parameter)
      parameters[value.name] = value.globalShape;
  return parameters;
}

std::string describeModels(const Plan &before, const Plan &after) {
  Parameters a = parametersOf(before), b = parametersOf(after);
  if (a == b)
    return "";
  size_t removed = 0, added = 0, reshaped = 0;
  for (const auto &[name, shape] : a)
    if (auto match = b.find(name); match == b.end())
      ++removed;
    else
      reshaped += match->second != shape;
  for (const auto &[name, shape] : b)
    added += !a.contains(name);
  return fmt::format("The models differ: {} ({}, {} parameters) became {} ({}, {} parameters); of their parameter "
                     "tensors {} are gone, {} new and {} of another shape.",
                     before.model.name, before.model.source, countText(double(before.model.parameters)),
                     after.model.name, after.model.source, countText(double(after.model.parameters)), removed, added,
                     reshaped);
}

std::vector<SettingChange> settingsOf(const Side &before, const Side &after) {
  auto mesh = [](const Side &side) {
    const Mesh &mesh = side.plan.mesh;
    return fmt::format("data={},tensor={},pipe={}", mesh.sizeOf(Axis::data), mesh.sizeOf(Axis::tensor),
                       mesh.sizeOf(Axis::pipe));
  };
  const Program &a = *before.view.program, &b = *after.view.program;
  return {{"model", before.plan.model.source, after.plan.model.source},
          {"optimizer", before.plan.model.optimizer, after.plan.model.optimizer},
          {"mesh", mesh(before), mesh(after)},
          {"samples in a step", std::to_string(a.batch), std::to_string(b.batch)},
          {"micro-batches", std::to_string(a.microbatches), std::to_string(b.microbatches)},
          {"schedule", a.schedule, b.schedule},
          {"plan", before.plan.search.stopped == "given by hand" ? "by hand" : "searched",
           after.plan.search.stopped == "given by hand" ? "by hand" : "searched"}};
}

} // namespace

PlanDifference compare(const Plan &planBefore, const ProgramView &viewBefore, const Plan &planAfter,
                       const ProgramView &viewAfter) {
  Side before(planBefore, viewBefore), after(planAfter, viewAfter);
  PlanDifference result;
  result.models = describeModels(planBefore, planAfter);
  result.settings = settingsOf(before, after);
  result.figures = figureChanges(before, after);
  result.traffic = trafficChanges(before, after);
  for (const auto &[key, id] : before.ops) {
    const auto &[phase, name, number] = key;
    auto match = after.ops.find(key);
    if (match == after.ops.end()) {
      ++result.numRemoved;
      result.ops.push_back({name, phase, id, noId, "removed", -before.totalUs[id]});
      continue;
    }
    std::string what = describe(before, planBefore.tasks[id], after, planAfter.tasks[match->second]);
    ++(what.empty() ? result.numSame : result.numMoved);
    if (!what.empty())
      result.ops.push_back({name, phase, id, match->second, what, after.totalUs[match->second] - before.totalUs[id]});
  }
  for (const auto &[key, id] : after.ops)
    if (!before.ops.contains(key)) {
      ++result.numAdded;
      result.ops.push_back({std::get<1>(key), std::get<0>(key), noId, id, "added", after.totalUs[id]});
    }
  std::sort(result.ops.begin(), result.ops.end(), [](const OpChange &a, const OpChange &b) {
    return std::tuple(std::abs(b.deltaUs), a.name, a.before, a.after) <
           std::tuple(std::abs(a.deltaUs), b.name, b.before, b.after);
  });
  return result;
}

} // namespace dg::viz
