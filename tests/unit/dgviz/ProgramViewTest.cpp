// SPDX-License-Identifier: Apache-2.0
// Proves what dgviz works out about a program: times, critical path, memory, traffic, advice, differences, and the
// reading of traces.
#include "runtime/package/Package.h"
#include "runtime/plan/TaskTraits.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/Exports.h"
#include "tools/dgviz/Report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <numeric>
#include <set>

using namespace dg;
using namespace dg::plan;
using namespace dg::viz;
using dg::plan::testing::SampleOptions;
using dg::plan::testing::samplePlan;
using dg::plan::testing::taskNamed;

namespace {

Report reportOf(const SampleOptions &options = {}) {
  Result<Report> report = makeReport(samplePlan(options));
  EXPECT_TRUE(report) << report.status().message();
  return std::move(*report);
}

/// A trace in which every op of every rank takes one microsecond after the other, `steps` times.
std::string traceOf(const Plan &plan, int steps) {
  nlohmann::json events = nlohmann::json::array();
  double now = 1000;
  for (int step = 1; step <= steps; ++step) {
    for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
      for (const Action &action : plan.programs[0].actions[size_t(plan.mesh.coordinatesOf(rank).pipe)])
        for (TaskId id : plan.chunks[action.chunk].tasks)
          events.push_back(
              {{"name", plan.tasks[id].name},
               {"ph", "X"},
               {"ts", now++},
               {"dur", 1},
               {"pid", rank},
               {"tid", 0},
               {"args", {{"program", "train"}, {"step", step}, {"microbatch", action.microbatch}, {"op", id}}}});
    now += step == 2 ? 500 : 10; // time between steps belongs to none
  }
  return nlohmann::json{{"traceEvents", events}}.dump();
}

} // namespace

TEST(Timeline, TakesAsLongAsThePlanSays) {
  Report report = reportOf({.stages = 3, .microbatches = 4});
  const ProgramView &view = report.programs[0];
  EXPECT_DOUBLE_EQ(view.predicted.totalUs, report.job->plan.predicted.stepUs);
  double last = 0;
  for (const TimelineEvent &event : view.predicted.events)
    last = std::max(last, event.endUs);
  EXPECT_NEAR(last, view.predicted.totalUs, 1e-6);
  for (const RowTimes &row : view.stages)
    EXPECT_NEAR(row.computeUs + row.exposedUs + row.idleUs, view.predicted.totalUs, 1e-6);
}

TEST(Timeline, CriticalPathReachesFromStartToEnd) {
  Report report = reportOf({.stages = 3, .microbatches = 4});
  const ProgramView &view = report.programs[0];
  const CriticalPath &path = view.predictedPath;
  EXPECT_GT(path.numEvents, 10u);
  EXPECT_NEAR(path.computeUs + path.communicationUs + path.waitingUs, view.predicted.totalUs, 1e-6);
  EXPECT_LT(path.waitingUs, 0.05 * view.predicted.totalUs) << "on one host messages hardly wait";
  std::set<uint32_t> stages;
  for (const TimelineEvent &event : view.predicted.events)
    if (event.isCritical)
      stages.insert(event.row);
  EXPECT_EQ(stages.size(), 3u) << "a pipeline's path goes through every stage";
}

TEST(Timeline, GradientsOfWeightsAndInputsAreToldApart) {
  Report report = reportOf();
  std::map<viz::Work, int> counts;
  const Plan &plan = report.job->plan;
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    ++counts[report.programs[0].work[id]];
  for (viz::Work work : {viz::Work::forward, viz::Work::inputGradient, viz::Work::weightGradient, viz::Work::update,
                         viz::Work::communication})
    EXPECT_GT(counts[work], 0) << viz::nameOf(work);
}

TEST(MemoryCurve, PeakIsWhatLivesThenAndFitsTheArena) {
  for (uint32_t microbatches : {1u, 4u}) {
    Report report = reportOf({.stages = 2, .microbatches = microbatches});
    const Plan &plan = report.job->plan;
    ASSERT_EQ(report.programs[0].memory.size(), 2u);
    for (uint32_t stage = 0; stage < 2; ++stage) {
      const MemoryCurve &curve = report.programs[0].memory[stage];
      uint64_t sum = 0, most = 0, kept = 0;
      for (const LiveTensor &tensor : curve.atPeak)
        sum += tensor.bytes;
      for (const MemoryPoint &point : curve.points)
        most = std::max(most, point.total());
      for (const Value &value : plan.values)
        if (value.stage == stage && (value.kind == ValueKind::parameter || value.kind == ValueKind::state))
          kept += value.bytes;
      EXPECT_EQ(sum, curve.peak.total());
      EXPECT_EQ(most, curve.peak.total());
      EXPECT_LE(curve.peak.total(), plan.memory[stage].arenaBytes);
      for (const MemoryPoint &point : curve.points)
        EXPECT_EQ(point.bytes[size_t(Holding::parameters)] + point.bytes[size_t(Holding::optimizer)], kept);
    }
  }
}

TEST(Communication, MatrixHasWhatTheOpsMove) {
  Report report = reportOf({.stages = 2, .data = 4, .microbatches = 4});
  const Plan &plan = report.job->plan;
  const ProgramView &view = report.programs[0];
  ASSERT_EQ(view.matrix.size, 8u);
  double sends = 0, reduces = 0;
  for (const CommunicationOp &op : view.communications)
    (plan.tasks[op.task].as<Send>() ? sends : reduces) += double(op.bytes) * op.calls;
  // Four ranks send each tensor; of a sum over four ranks each gives 2/4 to each of three others.
  double expected = sends * 4 + reduces * 4 * 3 * 2 / 4;
  EXPECT_NEAR(std::accumulate(view.matrix.bytes.begin(), view.matrix.bytes.end(), 0.0), expected, 1e-6);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(view.matrix.bytes[i * 8 + i], 0) << "nobody sends to himself";
    for (uint32_t j = 0; j < 8; ++j) {
      bool sameStage = i / 4 == j / 4, sameReplica = i % 4 == j % 4;
      EXPECT_EQ(view.matrix.bytes[i * 8 + j] > 0, i != j && (sameStage || sameReplica)) << i << " " << j;
    }
  }
  TrafficMatrix blocks = trafficMatrix(plan, view.communications, 4);
  EXPECT_EQ(blocks.ranksPerCell, 2u);
  EXPECT_NEAR(std::accumulate(blocks.bytes.begin(), blocks.bytes.end(), 0.0), expected, 1e-6);
}

TEST(Advice, NamesWhatLimitsAndWhatHelps) {
  // One micro-batch over four stages: three of four devices wait at any time.
  Report waiting = reportOf({.stages = 4, .microbatches = 1});
  EXPECT_NE(waiting.advice[0].limit.find("Waiting limits"), std::string::npos) << waiting.advice[0].limit;
  bool isAdvised = false;
  for (const Change &change : waiting.advice[0].changes)
    isAdvised |= change.how.find("--microbatches") != std::string::npos;
  EXPECT_TRUE(isAdvised);
  Report alone = reportOf({.stages = 1, .data = 1, .microbatches = 1});
  for (const Advice *advice : {&waiting.advice[0], &alone.advice[0]}) {
    EXPECT_LE(advice->changes.size(), 3u);
    for (size_t i = 1; i < advice->changes.size(); ++i)
      EXPECT_GE(advice->changes[i - 1].gainUs / advice->changes[i - 1].ofUs,
                advice->changes[i].gainUs / advice->changes[i].ofUs);
  }
}

TEST(Difference, SaysWhatMoved) {
  Plan before = samplePlan(), after = samplePlan();
  TaskId moved = taskNamed(after, "fc0_0/matmul"), renamed = taskNamed(after, "fc0_1/matmul");
  after.values[writesOf(after.tasks[moved])[0]].dtype = DType::bf16;
  after.tasks[renamed].name = "new/matmul";
  Result<Report> a = makeReport(before), b = makeReport(after);
  ASSERT_TRUE(a && b);
  PlanDifference difference = compare(before, a->programs[0], after, b->programs[0]);
  EXPECT_EQ(difference.numMoved, 1u);
  EXPECT_EQ(difference.numAdded, 1u);
  EXPECT_EQ(difference.numRemoved, 1u);
  EXPECT_EQ(difference.numSame + 2, a->programs[0].flow.nodes.size());
  bool isNamed = false;
  for (const OpChange &change : difference.ops)
    isNamed |= change.what == "type f32 → bf16" && change.name == "fc0_0/matmul";
  EXPECT_TRUE(isNamed);
  EXPECT_EQ(difference.models, "");
  PlanDifference same = compare(before, a->programs[0], before, a->programs[0]);
  EXPECT_TRUE(same.ops.empty());
  for (const FigureChange &change : same.figures)
    EXPECT_EQ(change.before, change.after);
}

TEST(Difference, ListsSettingsAndSaysWhenModelsDiffer) {
  Plan before = samplePlan(),
       after = samplePlan({.stages = 4, .data = 1, .microbatches = 8, .oneForwardOneBackward = false});
  Result<Report> a = makeReport(before), b = makeReport(after);
  ASSERT_TRUE(a && b);
  PlanDifference difference = compare(before, a->programs[0], after, b->programs[0]);
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const SettingChange &change : difference.settings)
    settings[change.name] = {change.before, change.after};
  EXPECT_EQ(settings["mesh"], std::pair(std::string("data=2,tensor=1,pipe=2"), std::string("data=1,tensor=1,pipe=4")));
  EXPECT_EQ(settings["micro-batches"], std::pair(std::string("4"), std::string("8")));
  EXPECT_EQ(settings["schedule"], std::pair(std::string("1f1b"), std::string("gpipe")));
  EXPECT_NE(difference.models.find("The models differ"), std::string::npos) << "twice the stages, twice the parameters";
  EXPECT_NE(difference.models.find("6 new"), std::string::npos) << difference.models;
}

TEST(Trace, IsMatchedWithItsPlan) {
  dg::test::TemporaryFolder folder;
  Plan plan = samplePlan();
  std::string path = folder.write("trace.json", traceOf(plan, 3));
  Result<Trace> trace = readTrace(path, plan);
  ASSERT_TRUE(trace) << trace.status().message();
  const MeasuredProgram &program = trace->programs.at(plan::ProgramKind::train);
  ASSERT_EQ(program.steps.size(), 3u);
  size_t events = 0;
  for (int64_t rank = 0; rank < 4; ++rank)
    for (const Action &action : plan.programs[0].actions[size_t(rank / 2)])
      events += plan.chunks[action.chunk].tasks.size();
  EXPECT_EQ(program.timeline.events.size(), events);
  EXPECT_DOUBLE_EQ(program.timeline.totalUs, double(events)) << "pauses between steps do not count";
  for (double us : meanTaskUs(plan, program.timeline))
    EXPECT_TRUE(us == 1 || us == -1) << us;
}

TEST(Trace, BrokenAndForeignFilesAreRefused) {
  dg::test::TemporaryFolder folder;
  Plan plan = samplePlan();
  std::string good = traceOf(plan, 1);
  auto messageFor = [&](const std::string &text) {
    Result<Trace> trace = readTrace(folder.write("trace.json", text), plan);
    EXPECT_FALSE(trace) << text.substr(0, 80);
    EXPECT_EQ(trace.status().exitCode(), 65);
    return trace.status().message();
  };
  EXPECT_NE(messageFor("").find("no whole trace"), std::string::npos);
  EXPECT_NE(messageFor(good.substr(0, good.size() / 2)).find("no whole trace"), std::string::npos);
  EXPECT_NE(messageFor("{\"events\": []}").find("no whole trace"), std::string::npos);
  EXPECT_NE(messageFor("{\"traceEvents\": []}").find("no event"), std::string::npos);
  EXPECT_NE(messageFor(R"({"traceEvents": [{"ph": "X", "name": "a"}]})").find("\"ts\""), std::string::npos);
  Plan other = plan;
  other.tasks[taskNamed(other, "fc0_0/matmul")].name = "elsewhere";
  EXPECT_NE(messageFor(traceOf(other, 1)).find("another job"), std::string::npos);
  EXPECT_FALSE(readTrace(folder.path("missing.json"), plan));
}

TEST(Exports, QuoteNamesByTheRulesOfTheirFormat) {
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "fc0_0/matmul")].name = "=1+\"<b>&\\\n";
  Result<Report> made = makeReport(plan);
  ASSERT_TRUE(made);
  const Report &report = *made;
  std::string csv = toCsv(plan, report.programs);
  EXPECT_NE(csv.find("\"'=1+\"\"<b>&"), std::string::npos) << "quotes doubled, no formula";
  std::string dot = toDot(plan, report.programs[0]);
  EXPECT_NE(dot.find("\"=1+\\\"<b>&\\\\ "), std::string::npos);
  Result<std::string> svg = toSvg(plan, report.programs[0]);
  ASSERT_TRUE(svg);
  EXPECT_EQ(svg->find("<b>"), std::string::npos);
  nlohmann::json perfetto = nlohmann::json::parse(toPerfetto(plan, report.programs));
  size_t events = 0;
  for (const auto &event : perfetto["traceEvents"])
    events += event["ph"] == "X";
  EXPECT_EQ(events, report.programs[0].predicted.events.size());
  nlohmann::json explorer = nlohmann::json::parse(toModelExplorer(plan, report.programs));
  ASSERT_EQ(explorer["graphs"].size(), 1u);
  EXPECT_EQ(explorer["graphs"][0]["nodes"].size(), report.programs[0].flow.nodes.size());
  size_t lines = 0;
  for (const auto &node : explorer["graphs"][0]["nodes"])
    lines += node["incomingEdges"].size();
  EXPECT_EQ(lines, report.programs[0].flow.edges.size());
}
