// SPDX-License-Identifier: Apache-2.0
// Proves what dgviz makes of a trace, on runs whose every time is known: the critical path goes where lengthening an op
// lengthens the step, waiting is told from communication, and the terminal shows computing as computing.
#include "runtime/package/Package.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/dgviz/MeasuredRun.h"
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/Report.h"
#include "tools/dgviz/TextSummary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <sstream>

using namespace dg;
using namespace dg::plan;
using namespace dg::viz;
using dg::plan::testing::samplePlan;
using dg::plan::testing::taskNamed;
using dg::viz::testing::RunTimes;
using dg::viz::testing::traceOfRun;

namespace {

Timeline measured(const Plan &plan, const RunTimes &times) {
  dg::test::TemporaryFolder folder;
  Result<Trace> trace = readTrace(folder.write("trace.json", traceOfRun(plan, times)), plan);
  EXPECT_TRUE(trace) << trace.status().message();
  return trace->programs.at(plan::ProgramKind::train).timeline;
}

std::set<uint32_t> criticalRows(const Timeline &timeline) {
  std::set<uint32_t> rows;
  for (const TimelineEvent &event : timeline.events)
    if (event.isCritical)
      rows.insert(event.row);
  return rows;
}

} // namespace

TEST(MeasuredPath, FollowsCollectivesToTheRankThatCameLast) {
  Plan plan = samplePlan({.stages = 1, .data = 4, .microbatches = 1});
  TaskId slow = taskNamed(plan, "fc0_1/matmul");
  RunTimes times{[&](int64_t rank, TaskId task, uint32_t) { return rank == 2 && task == slow ? 100.0 : 1.0; }};
  Timeline timeline = measured(plan, times);
  CriticalPath path = markCriticalPath(plan, timeline);
  bool isMarked = false;
  for (const TimelineEvent &event : timeline.events)
    isMarked |= event.isCritical && event.task == slow && event.row == 2;
  EXPECT_TRUE(isMarked) << "three ranks wait for rank 2 in the first all-reduce";
  EXPECT_NEAR(path.computeUs + path.communicationUs + path.waitingUs, timeline.totalUs, 1e-6);
  EXPECT_NEAR(path.waitingUs, 0, 1e-6) << "whatever was waited for is on the path";
  EXPECT_GE(path.taskUs[slow], 100 - 1e-6);
  std::vector<RowTimes> rows = rowTimes(plan, timeline);
  EXPECT_GT(rows[0].idleUs, 90) << "waiting for rank 2 is no communication";
  EXPECT_LT(rows[0].exposedUs, 10);
  EXPECT_LT(rows[2].idleUs, 1e-6);
}

TEST(MeasuredPath, FollowsMessagesToTheStageThatSentThem) {
  Plan plan = samplePlan({.stages = 3, .data = 1, .microbatches = 1});
  Timeline timeline = measured(plan, {[](int64_t, TaskId, uint32_t) { return 1.0; }});
  CriticalPath path = markCriticalPath(plan, timeline);
  EXPECT_EQ(criticalRows(timeline), (std::set<uint32_t>{0, 1, 2}));
  ASSERT_EQ(path.crossings.size(), 4u) << "two borders, there and back";
  EXPECT_EQ(path.crossings.back().from, 0u);
  EXPECT_EQ(path.crossings.back().to, 1u);
  EXPECT_NEAR(path.waitingUs, 0, 1e-6);
}

TEST(MeasuredPath, LengtheningAnOpOfItLengthensTheStepByAsMuch) {
  for (unsigned seed : {1u, 2u, 3u}) {
    Plan plan = samplePlan({.stages = 2, .data = 2, .microbatches = 2, .layers = 2});
    std::map<std::tuple<int64_t, TaskId, uint32_t>, double> lengths;
    std::mt19937 random(seed);
    RunTimes times{[&](int64_t rank, TaskId task, uint32_t microbatch) {
      auto [found, isNew] = lengths.try_emplace({rank, task, microbatch}, 0.0);
      if (isNew)
        found->second = 0.5 + double(random() % 1000) / 100;
      return found->second;
    }};
    Timeline timeline = measured(plan, times);
    CriticalPath path = markCriticalPath(plan, timeline);
    EXPECT_NEAR(path.computeUs + path.communicationUs, timeline.totalUs, 1e-6) << "seed " << seed;
    size_t numChecked = 0;
    for (const TimelineEvent &event : timeline.events) {
      auto own = lengths.find({event.row, event.task, event.microbatch});
      if (!event.isCritical || own == lengths.end())
        continue;
      own->second += 0.125;
      EXPECT_NEAR(measured(plan, times).totalUs, timeline.totalUs + 0.125, 1e-6)
          << plan.tasks[event.task].name << " on rank " << event.row << ", seed " << seed;
      own->second -= 0.125;
      ++numChecked;
    }
    EXPECT_GT(numChecked, 8u);
    EXPECT_FALSE(path.crossings.empty()) << "seed " << seed;
  }
}

TEST(MeasuredText, ShowsComputingWhereRanksCompute) {
  dg::test::TemporaryFolder folder;
  Plan plan = samplePlan();
  // Communication is long, and mostly hidden: sends travel while the next micro-batch is computed.
  RunTimes times{[&](int64_t, TaskId task, uint32_t) { return plan.tasks[task].as<Kernel>() ? 10.0 : 0.1; }, 8};
  std::string job = folder.path("job.dgx");
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", toJson(plan))}));
  Result<Report> report = makeReport({job, folder.write("trace.json", traceOfRun(plan, times)), "", ""});
  ASSERT_TRUE(report) << report.status().message();
  const ProgramView &view = report->programs[0];
  std::istringstream lines(textSummary(*report));
  size_t numRows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  rank ", 0) != 0)
      continue;
    std::string columns = line.substr(11);
    const RowTimes &row = view.ranks[numRows++];
    auto share = [&](auto isOf) {
      return double(std::count_if(columns.begin(), columns.end(), isOf)) / double(columns.size());
    };
    EXPECT_NEAR(share([](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }),
                row.computeUs / view.measured.totalUs, 0.06)
        << line;
    EXPECT_NEAR(share([](char c) { return c == '~'; }), row.exposedUs / view.measured.totalUs, 0.06) << line;
  }
  EXPECT_EQ(numRows, 4u);
}
