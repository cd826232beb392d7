// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/PageData.h"
#include "tools/dgviz/GraphLayout.h"
#include "tools/dgviz/facts/PartialSums.h"
#include "tools/dgviz/facts/PlanNumbers.h"

#include "runtime/plan/PlanFacts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;
using Json = nlohmann::ordered_json;

namespace {

/// A timeline with more events is drawn op by op for its first micro-batch only.
constexpr size_t maxEvents = 120000;
constexpr size_t maxAtPeak = 60, maxCommunications = 400, maxOpChanges = 400, maxCrossings = 2000, maxPathTasks = 12;

double rounded(double value, double steps = 1000) { return std::round(value * steps) / steps; }

std::string fileName(const std::string &path) { return path.substr(path.find_last_of('/') + 1); }

Json layoutJson(const LevelLayout &layout) {
  Json boxes = Json::array(), lines = Json::array();
  for (const Point &box : layout.boxes) {
    boxes.push_back(rounded(box.x, 10));
    boxes.push_back(rounded(box.y, 10));
  }
  for (const std::vector<Point> &line : layout.lines) {
    Json points = Json::array();
    for (const Point &point : line) {
      points.push_back(rounded(point.x, 10));
      points.push_back(rounded(point.y, 10));
    }
    lines.push_back(std::move(points));
  }
  return {{"w", rounded(layout.width, 10)}, {"h", rounded(layout.height, 10)}, {"boxes", boxes}, {"lines", lines}};
}

/// Columns, by box: the title, phase, stage, parent, item of the op or -1, number of its layout or -1, and its lines
/// [from, to, bytes, values, route]; children are found by their parents.
Result<Json> treeJson(const OpTree &tree, const FlowGraph &flow, LayoutStore &layouts) {
  Json titles = Json::array(), phases = Json::array(), stages = Json::array(), parents = Json::array();
  Json items = Json::array(), numbers = Json::array(), lines = Json::array(), routes = Json::array();
  std::map<std::string, size_t> routeOf;
  for (const TreeNode &node : tree.nodes) {
    titles.push_back(node.title);
    phases.push_back(int(node.phase));
    stages.push_back(node.stage);
    parents.push_back(node.parent == noId ? -1 : int64_t(node.parent));
    items.push_back(node.flowNode == noId ? -1 : int64_t(flow.nodes[node.flowNode].item));
    int64_t number = -1;
    if (node.flowNode == noId) {
      Result<uint32_t> layout = layouts.layOut(tree, node);
      if (!layout)
        return layout.status();
      number = *layout;
    }
    numbers.push_back(number);
    Json own = Json::array();
    for (const LevelEdge &edge : node.edges) {
      auto [route, isNew] = routeOf.try_emplace(edge.route, routeOf.size());
      if (isNew)
        routes.push_back(edge.route);
      for (int64_t part :
           {int64_t(edge.from), int64_t(edge.to), int64_t(edge.bytes), int64_t(edge.values), int64_t(route->second)})
        own.push_back(part);
    }
    lines.push_back(std::move(own));
  }
  Json between = Json::array();
  for (const FlowEdge &edge : flow.edges) {
    between.push_back(flow.nodes[edge.from].item);
    between.push_back(flow.nodes[edge.to].item);
  }
  return Json{{"titles", titles},   {"phases", phases}, {"stages", stages}, {"parents", parents}, {"items", items},
              {"layouts", numbers}, {"lines", lines},   {"routes", routes}, {"flow", between}};
}

Json timelineJson(const Plan &plan, const Timeline &timeline) {
  std::vector<ChunkId> chunkOf(plan.tasks.size(), 0);
  for (ChunkId chunk = 0; chunk < plan.chunks.size(); ++chunk)
    for (TaskId task : plan.chunks[chunk].tasks)
      chunkOf[task] = chunk;
  bool isCut = timeline.events.size() > maxEvents;
  Json tasks = Json::array(), microbatches = Json::array(), rows = Json::array(), lanes = Json::array();
  Json starts = Json::array(), lengths = Json::array(), waits = Json::array(), critical = Json::array();
  using Instance = std::tuple<uint32_t, ChunkId, uint32_t>; // row, chunk, micro-batch
  std::map<Instance, std::pair<double, double>> bars;
  // A pass is as long as it computes: its sends may go on beside the next one.
  for (bool computes : {true, false}) {
    std::set<Instance> known;
    for (const auto &[instance, span] : bars)
      known.insert(instance);
    for (const TimelineEvent &event : timeline.events) {
      Instance instance = {event.row, chunkOf[event.task], event.microbatch};
      if ((event.lane + 1 < timeline.numLanes) != computes || known.contains(instance))
        continue;
      auto [bar, isNew] = bars.try_emplace(instance, std::pair(event.startUs, event.endUs));
      bar->second.second = std::max(bar->second.second, event.endUs);
    }
  }
  size_t kept = 0;
  for (const TimelineEvent &event : timeline.events) {
    if (isCut && (event.microbatch != 0 || kept >= maxEvents))
      continue;
    ++kept;
    tasks.push_back(event.task);
    microbatches.push_back(event.microbatch);
    rows.push_back(event.row);
    lanes.push_back(event.lane);
    starts.push_back(rounded(event.startUs));
    lengths.push_back(rounded(event.endUs - event.startUs));
    waits.push_back(rounded(event.waitUs));
    critical.push_back(event.isCritical ? 1 : 0);
  }
  Json barList = Json::array();
  for (const auto &[key, span] : bars) {
    const auto &[row, chunk, microbatch] = key;
    barList.push_back({row, chunk, microbatch, rounded(span.first), rounded(span.second)});
  }
  return {{"total_us", rounded(timeline.totalUs)},
          {"rows", timeline.numRows},
          {"lanes", timeline.numLanes},
          {"scale", timeline.scale},
          {"cut", isCut},
          {"tasks", tasks},
          {"microbatches", microbatches},
          {"row", rows},
          {"lane", lanes},
          {"starts", starts},
          {"lengths", lengths},
          {"waits", waits},
          {"critical", critical},
          {"bars", barList}};
}

Json rowsJson(const std::vector<RowTimes> &rows) {
  Json list = Json::array();
  for (const RowTimes &row : rows)
    list.push_back({rounded(row.computeUs), rounded(row.exposedUs), rounded(row.idleUs)});
  return list;
}

Json pathJson(const Timeline &timeline, const CriticalPath &path) {
  std::map<TaskId, uint32_t> runs;
  for (const TimelineEvent &event : timeline.events)
    if (event.isCritical)
      ++runs[event.task];
  std::vector<TaskId> longest;
  for (const auto &[task, count] : runs)
    longest.push_back(task);
  std::sort(longest.begin(), longest.end(),
            [&](TaskId a, TaskId b) { return std::pair(path.taskUs[b], a) < std::pair(path.taskUs[a], b); });
  Json tasks = Json::array(); // [op, its share of the path, how often it is on it]
  for (size_t i = 0; i < std::min(maxPathTasks, longest.size()); ++i)
    tasks.push_back({longest[i], rounded(path.taskUs[longest[i]]), runs[longest[i]]});
  Json crossings = Json::array();
  for (size_t i = 0; i < std::min(maxCrossings, path.crossings.size()); ++i)
    crossings.push_back({path.crossings[i].from, path.crossings[i].to, rounded(path.crossings[i].timeUs)});
  return {{"compute_us", rounded(path.computeUs)},
          {"communication_us", rounded(path.communicationUs)},
          {"waiting_us", rounded(path.waitingUs)},
          {"events", path.numEvents},
          {"tasks", tasks},
          {"crossings", crossings},
          {"num_crossings", path.crossings.size()}};
}

Json pointJson(const MemoryPoint &point) {
  Json list = {rounded(point.timeUs)};
  for (uint64_t bytes : point.bytes)
    list.push_back(bytes);
  return list;
}

Json memoryJson(const std::vector<MemoryCurve> &curves) {
  Json stages = Json::array();
  for (const MemoryCurve &curve : curves) {
    Json points = Json::array(), alive = Json::array();
    for (const MemoryPoint &point : curve.points)
      points.push_back(pointJson(point));
    for (size_t i = 0; i < std::min(maxAtPeak, curve.atPeak.size()); ++i)
      alive.push_back({curve.atPeak[i].value, curve.atPeak[i].microbatch, curve.atPeak[i].bytes});
    stages.push_back(
        {{"points", points}, {"peak", pointJson(curve.peak)}, {"alive", alive}, {"num_alive", curve.atPeak.size()}});
  }
  return stages;
}

Json communicationJson(const ProgramView &view) {
  // The longest first: a list is for finding what costs.
  std::vector<const CommunicationOp *> ops;
  for (const CommunicationOp &op : view.communications)
    ops.push_back(&op);
  std::sort(ops.begin(), ops.end(), [](const CommunicationOp *a, const CommunicationOp *b) {
    return std::pair(b->predictedUs * b->calls, a->task) < std::pair(a->predictedUs * a->calls, b->task);
  });
  Json list = Json::array(), bytes = Json::array(), times = Json::array();
  for (size_t i = 0; i < std::min(maxCommunications, ops.size()); ++i)
    list.push_back({{"op", ops[i]->task},
                    {"axis", nameOf(ops[i]->axis)},
                    {"algorithm", ops[i]->algorithm},
                    {"bytes", ops[i]->bytes},
                    {"calls", ops[i]->calls},
                    {"predicted_us", rounded(ops[i]->predictedUs)},
                    {"measured_us", rounded(ops[i]->measuredUs)}});
  for (size_t i = 0; i < view.matrix.bytes.size(); ++i) {
    bytes.push_back(std::round(view.matrix.bytes[i]));
    times.push_back(rounded(view.matrix.timeUs[i]));
  }
  return {{"ops", list},
          {"num_ops", ops.size()},
          {"size", view.matrix.size},
          {"ranks_per_cell", view.matrix.ranksPerCell},
          {"bytes", bytes},
          {"time_us", times}};
}

Json figuresJson(const Figures &figures) {
  return {{"step_us", figures.stepUs},
          {"measured_step_us", figures.measuredStepUs},
          {"compute_us", figures.computeUs},
          {"comm_us", figures.commUs},
          {"bubble", figures.bubble},
          {"compute", figures.computeShare},
          {"arithmetic", figures.arithmeticShare},
          {"memory_bound", figures.memoryShare},
          {"launch", figures.launchShare},
          {"exposed", figures.exposedShare},
          {"idle", figures.idleShare},
          {"flops", figures.flops},
          {"utilisation", figures.utilisation},
          {"imbalance", figures.imbalance},
          {"slowest_stage", figures.slowestStage},
          {"bytes_moved", figures.bytesMoved},
          {"peak_bytes", figures.peakBytes}};
}

Json adviceJson(const Advice &advice) {
  Json changes = Json::array();
  for (const Change &change : advice.changes)
    changes.push_back({{"title", change.title},
                       {"why", change.why},
                       {"how", change.how},
                       {"gain_us", change.gainUs},
                       {"of_us", change.ofUs}});
  return {{"limit", advice.limit}, {"facts", advice.facts}, {"changes", changes}};
}

Result<Json> programJson(const Plan &plan, const ProgramView &view, const Advice &advice, LayoutStore &layouts) {
  Result<Json> graph = treeJson(view.tree, view.flow, layouts);
  if (!graph)
    return graph.status();
  Json json = {{"name", plan::nameOf(view.program->kind)},
               {"figures", figuresJson(view.figures)},
               {"advice", adviceJson(advice)},
               {"graph", std::move(*graph)},
               {"predicted", timelineJson(plan, view.predicted)},
               {"predicted_path", pathJson(view.predicted, view.predictedPath)},
               {"stages", rowsJson(view.stages)},
               {"memory", memoryJson(view.memory)},
               {"communication", communicationJson(view)},
               {"measured", nullptr}};
  if (!view.trace)
    return json;
  json["measured"] = timelineJson(plan, view.measured);
  json["measured_path"] = pathJson(view.measured, view.measuredPath);
  json["ranks"] = rowsJson(view.ranks);
  Json steps = Json::array();
  for (auto [step, us] : view.trace->steps)
    steps.push_back({step, rounded(us)});
  json["steps"] = std::move(steps);
  json["shown_step"] = view.trace->shownStep;
  return json;
}

/// Per op of the plan, from the program that it belongs to: what it works on and how long it takes.
Json opsJson(const Plan &plan, const std::vector<ProgramView> &programs) {
  Json work = Json::array(), predicted = Json::array(), measured = Json::array();
  for (TaskId id = 0; id < plan.tasks.size(); ++id) {
    double predictedUs = -1, measuredUs = -1;
    for (const ProgramView &view : programs) {
      predictedUs = std::max(predictedUs, view.predictedUs[id]);
      measuredUs = view.trace ? std::max(measuredUs, view.measuredUs[id]) : measuredUs;
    }
    work.push_back(programs.empty() ? int(Work::other) : int(programs[0].work[id]));
    predicted.push_back(rounded(predictedUs));
    measured.push_back(rounded(measuredUs));
  }
  Json partial = Json::array(); // [op, value, axes, whether the op adds the parts up]
  for (const PartialSum &sum : partialSums(plan)) {
    Json axes = Json::array();
    for (Axis axis : sum.axes)
      axes.push_back(nameOf(axis));
    partial.push_back({sum.task, sum.value, std::move(axes), sum.isReduced});
  }
  return {{"work", work}, {"predicted_us", predicted}, {"measured_us", measured}, {"partial", partial}};
}

Json changesJson(const std::vector<FigureChange> &changes) {
  static constexpr const char *units[] = {"time", "bytes", "share", "count"};
  Json list = Json::array();
  for (const FigureChange &change : changes)
    list.push_back({{"name", change.name},
                    {"unit", units[size_t(change.unit)]},
                    {"before", change.before},
                    {"after", change.after},
                    {"less_is_better", change.lessIsBetter}});
  return list;
}

Json differenceJson(const Report &report) {
  if (report.before.empty())
    return nullptr;
  Json programs = Json::object();
  for (const auto &[name, difference] : report.differences) {
    Json ops = Json::array();
    for (size_t i = 0; i < std::min(maxOpChanges, difference.ops.size()); ++i) {
      const OpChange &change = difference.ops[i];
      ops.push_back({{"name", change.name},
                     {"phase", plan::nameOf(change.phase)},
                     {"what", change.what},
                     {"delta_us", rounded(change.deltaUs)},
                     {"op", change.after == noId ? Json(nullptr) : Json(change.after)}});
    }
    Json settings = Json::array();
    for (const SettingChange &setting : difference.settings)
      settings.push_back({{"name", setting.name}, {"before", setting.before}, {"after", setting.after}});
    programs[name] = {{"models", difference.models},
                      {"settings", settings},
                      {"figures", changesJson(difference.figures)},
                      {"traffic", changesJson(difference.traffic)},
                      {"ops", ops},
                      {"same", difference.numSame},
                      {"moved", difference.numMoved},
                      {"added", difference.numAdded},
                      {"removed", difference.numRemoved}};
  }
  return {{"before", fileName(report.before)}, {"after", fileName(report.job->path)}, {"programs", programs}};
}

Result<Json> phasesJson(const Report &report, LayoutStore &layouts) {
  if (!report.job->phases)
    return Json(nullptr);
  Json list = Json::array();
  for (const CompilerPhase &phase : *report.job->phases) {
    Result<Json> graph = treeJson(nest(phase.graph), phase.graph, layouts);
    if (!graph)
      return graph.status();
    list.push_back({{"pass", phase.pass},
                    {"summary", phase.summary},
                    {"added", phase.added},
                    {"removed", phase.removed},
                    {"kinds", phase.kinds},
                    {"num_ops", phase.numOps},
                    {"ops", phase.ops},
                    {"graph", std::move(*graph)}});
  }
  return list;
}

Json parametersJson(const Job &job) {
  Json list = Json::array();
  for (const Parameter &parameter : job.parameters)
    list.push_back({parameter.name, parameter.type, parameter.role, parameter.readers});
  return list;
}

Json reasonsJson(const Job &job) {
  if (!job.reasons)
    return nullptr;
  Json largest = Json::array(), ops = Json::object();
  for (const CostReason &item : job.reasons->largest)
    largest.push_back({{"what", item.what}, {"advice", item.advice}, {"step_us", item.stepUs}});
  for (const OpReason &op : job.reasons->ops)
    ops[op.name] = {{"choice", op.choice},
                    {"cost_us", op.costUs},
                    {"runner_up", op.runnerUp},
                    {"runner_up_us", op.runnerUpUs},
                    {"bound_by", op.boundBy}};
  return {{"binding", job.reasons->binding}, {"largest", largest}, {"ops", ops}};
}

} // namespace

Result<std::string> pageData(const Report &report) {
  const Plan &plan = report.job->plan;
  LayoutStore store;
  Json programs = Json::array(), layouts = Json::array();
  for (size_t i = 0; i < report.programs.size(); ++i) {
    Result<Json> program = programJson(plan, report.programs[i], report.advice[i], store);
    if (!program)
      return program.status();
    programs.push_back(std::move(*program));
  }
  Result<Json> phases = phasesJson(report, store);
  if (!phases)
    return phases.status();
  for (const LevelLayout &layout : store.layouts())
    layouts.push_back(layoutJson(layout));
  Json data = {{"tool", "dgviz " DG_VERSION},
               {"job", fileName(report.job->path)},
               {"trace", report.trace ? Json(fileName(report.trace->path)) : Json(nullptr)},
               {"cluster", report.clusterName},
               {"own_cluster", report.isOwnCluster},
               {"box", {boxWidth, boxHeight}},
               {"programs", std::move(programs)},
               {"ops", opsJson(plan, report.programs)},
               {"layouts", std::move(layouts)},
               {"difference", differenceJson(report)},
               {"reasons", reasonsJson(*report.job)},
               {"parameters", parametersJson(*report.job)},
               {"sizes", report.job->sizes},
               {"phases", std::move(*phases)}};
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace dg::viz
