// SPDX-License-Identifier: Apache-2.0
// Proves that dgviz draws every plan into one closed page that shows hostile names as text, and keeps to its exit
// codes.
#include "runtime/package/Package.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/GraphLayout.h"
#include "tools/dgviz/OpGraph.h"
#include "tools/dgviz/Page.h"
#include "tools/dgviz/PlanNumbers.h"
#include "tools/dgviz/TextSummary.h"
#include "tools/dgviz/Timeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/wait.h>

using namespace dg;
using namespace dg::plan;
using namespace dg::viz;
using dg::plan::testing::samplePlan;
using dg::plan::testing::taskNamed;

namespace {

const std::string hostile = "</script><img src=x onerror=alert(1)>";

/// The JSON of one data block.
nlohmann::json blockOf(const std::string &page, const std::string &id) {
  std::string open = "id=\"" + id + "\">";
  size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int runTool(const std::string &arguments, const std::string &output) {
  int status = std::system((std::string(DG_DGVIZ) + " " + arguments + " > " + output + " 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST(Page, HoldsThePlanAndShowsHostileNamesAsText) {
  Plan plan = samplePlan();
  plan.tasks[taskNamed(plan, "fc0_0/matmul")].name = hostile;
  plan.model.name = hostile;
  Result<std::string> page = makePage(plan);
  ASSERT_TRUE(page) << page.status().message();
  EXPECT_EQ(page->find("<img"), std::string::npos) << "the name reached the page as HTML";
  EXPECT_EQ(countOf(*page, "</script>"), 3u);
  nlohmann::json read = blockOf(*page, "plan-data");
  EXPECT_EQ(read["model"]["name"], hostile);
  EXPECT_EQ(read.dump(), nlohmann::json::parse(toJson(plan)).dump());
  EXPECT_EQ(blockOf(*page, "view-data")["programs"][0]["name"], "train");
}

TEST(Page, LoadsNothingAndInsertsNoHtml) {
  Result<std::string> page = makePage(samplePlan());
  ASSERT_TRUE(page) << page.status().message();
  EXPECT_NE(page->find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  for (const char *forbidden :
       {"http:", "https:", "src=", "href=", "url(h", "@import", "innerHTML", "outerHTML", "insertAdjacent",
        "document.write", "eval(", "@STYLE", "@SCRIPT", "@PLAN", "@VIEW", "unsafe-inline"}) {
    std::string text = *page;
    // The name of SVG's namespace is no address.
    for (size_t at; (at = text.find("http://www.w3.org/2000/svg")) != std::string::npos;)
      text.erase(at, 26);
    EXPECT_EQ(text.find(forbidden), std::string::npos) << forbidden;
  }
}

TEST(Page, PlansWithoutProgramsOrOpsAreDrawn) {
  Plan plan;
  plan.memory.resize(1);
  EXPECT_TRUE(makePage(plan));
  plan.programs.resize(1);
  plan.programs[0].name = "infer";
  plan.programs[0].actions.resize(1);
  EXPECT_TRUE(makePage(plan));
}

TEST(OpGraph, EveryOpButZeroingIsInOneGroup) {
  Plan plan = samplePlan({.stages = 3});
  OpGraph graph = groupOps(plan, plan.programs[0]);
  std::multiset<TaskId> drawn;
  for (const OpGroup &group : graph.groups)
    drawn.insert(group.tasks.begin(), group.tasks.end());
  for (const Chunk &chunk : plan.chunks)
    for (TaskId task : chunk.tasks)
      EXPECT_EQ(drawn.count(task), chunk.phase == Phase::begin ? 0u : 1u);
  EXPECT_EQ(graph.grouping, "by layer");
  size_t crossing = 0;
  for (const GroupEdge &edge : graph.edges)
    crossing += edge.crossesStages;
  EXPECT_EQ(crossing, 4u) << "two borders, forward and backward";
}

TEST(OpGraph, LargePlansAreGroupedUntilTheyFit) {
  Plan plan = samplePlan({.stages = 2, .layers = 400});
  OpGraph graph = groupOps(plan, plan.programs[0]);
  EXPECT_LE(graph.groups.size(), 250u);
  EXPECT_EQ(graph.grouping, "by stage and phase");
  EXPECT_EQ(graph.groups.size(), 6u);
}

TEST(GraphLayout, BackwardStandsBesideForward) {
  Plan plan = samplePlan({.stages = 1, .microbatches = 1, .layers = 4});
  OpGraph graph = groupOps(plan, plan.programs[0]);
  Result<GraphLayout> layout = layOut(graph);
  ASSERT_TRUE(layout) << layout.status().message();
  ASSERT_EQ(layout->boxes.size(), graph.groups.size());
  double forwardEnd = 0, backwardEnd = 0;
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    EXPECT_GE(layout->boxes[i].x, 0);
    EXPECT_LE(layout->boxes[i].x, layout->width);
    EXPECT_LE(layout->boxes[i].y, layout->height);
    (graph.groups[i].phase == Phase::forward ? forwardEnd : backwardEnd) =
        std::max(graph.groups[i].phase == Phase::forward ? forwardEnd : backwardEnd, layout->boxes[i].y);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(std::abs(layout->boxes[i].x - layout->boxes[j].x) >= layout->boxWidth ||
                  std::abs(layout->boxes[i].y - layout->boxes[j].y) >= layout->boxHeight)
          << "boxes overlap";
  }
  EXPECT_LE(std::abs(forwardEnd - backwardEnd), 3 * layout->boxHeight) << "backward hangs below forward";
  for (const std::string &path : layout->paths)
    EXPECT_EQ(path.substr(0, 1), "M");
}

TEST(Timeline, ReceiversWaitForSenders) {
  Plan plan = samplePlan({.stages = 3, .microbatches = 4});
  Timeline timeline = timelineOf(plan, plan.programs[0]);
  EXPECT_TRUE(timeline.isToScale);
  EXPECT_DOUBLE_EQ(timeline.totalUs, plan.predicted.stepUs);
  std::map<std::pair<ChunkId, uint32_t>, TimelineBar> bars;
  for (size_t stage = 0; stage < 3; ++stage) {
    ASSERT_EQ(timeline.stages[stage].size(), plan.programs[0].actions[stage].size());
    double before = 0;
    for (const TimelineBar &bar : timeline.stages[stage]) {
      EXPECT_GE(bar.startUs, before);
      before = bar.endUs;
      bars[{bar.chunk, bar.microbatch}] = bar;
    }
  }
  for (uint32_t m = 0; m < 4; ++m) { // chunks: 4 per stage, forward is the second and backward the third
    EXPECT_GE((bars[{5, m}].startUs), (bars[{1, m}].endUs));
    EXPECT_GE((bars[{6, m}].startUs), (bars[{10, m}].endUs));
  }
}

TEST(PlanNumbers, TrafficCountsEveryMicrobatch) {
  Plan plan = samplePlan({.stages = 2, .microbatches = 4, .layers = 3});
  std::map<std::pair<uint32_t, std::string>, Traffic> traffic;
  for (const Traffic &row : trafficOf(plan, plan.programs[0]))
    traffic[{row.stage, row.op}] = row;
  EXPECT_EQ((traffic[{0, "send"}].calls), 4u);
  EXPECT_EQ((traffic[{0, "send"}].bytes), 4u * 8 * 16 * 4);
  EXPECT_EQ((traffic[{1, "all_reduce"}].calls), 3u);
  EXPECT_EQ((traffic[{1, "all_reduce"}].bytes), 3u * 16 * 16 * 4);
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(timeText(1234.5), "1.23 ms");
}

TEST(TextSummary, SaysTheNumbersAndStripsControlCharacters) {
  Plan plan = samplePlan();
  plan.model.name = "evil\x1b[2J";
  std::string text = textSummary(plan);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const char *part :
       {"pipe=2 data=2 tensor=1: 4 ranks", "step 1.23 ms", "bubble 12.5 %", "stage 1", "schedule 1f1b"})
    EXPECT_NE(text.find(part), std::string::npos) << text << "lacks " << part;
}

TEST(Tool, ExitCodesAndFiles) {
  dg::test::TemporaryFolder folder;
  std::string job = folder.path("job.dgx"), page = folder.path("plan.html"), out = folder.path("out");
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", toJson(samplePlan()))}));
  EXPECT_EQ(runTool(job + " -o " + page, out), 0) << readFile(out);
  EXPECT_NE(readFile(page).find("plan-data"), std::string::npos);
  EXPECT_EQ(runTool(job + " --text", out), 0);
  EXPECT_NE(readFile(out).find("4 ranks"), std::string::npos);
  EXPECT_EQ(runTool("--help", out), 0);
  EXPECT_NE(readFile(out).find("Exit codes"), std::string::npos);
  EXPECT_EQ(runTool("", out), 2);
  EXPECT_EQ(runTool(job + " --colour", out), 2);
  EXPECT_EQ(runTool(job + " -o " + (folder.path("none/plan.html")), out), 1);
  EXPECT_EQ(runTool((folder.path("missing.dgx")) + " -o " + (folder.path("never.html")), out), 65);
  EXPECT_FALSE(std::filesystem::exists(folder.path("never.html")));
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", "{\"version\": 9}")}));
  EXPECT_EQ(runTool(job + " --text", out), 65);
  EXPECT_NE(readFile(out).find("version 9"), std::string::npos) << readFile(out);
}
