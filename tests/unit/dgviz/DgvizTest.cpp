// SPDX-License-Identifier: Apache-2.0
// Proves that dgviz draws every plan into one closed page that shows hostile names as text, lays out what it nests, and
// keeps to its exit codes.
#include "partitioner/predict/Simulator.h"
#include "runtime/package/Package.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/GraphLayout.h"
#include "tools/dgviz/Page.h"
#include "tools/dgviz/TextSummary.h"
#include "tools/dgviz/facts/PlanNumbers.h"

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

Result<std::string> pageOf(Plan plan) {
  Result<Report> report = makeReport(std::move(plan));
  if (!report)
    return report.status();
  return makePage(*report);
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
  Result<std::string> page = pageOf(plan);
  ASSERT_TRUE(page) << page.status().message();
  EXPECT_EQ(page->find("<img"), std::string::npos) << "the name reached the page as HTML";
  EXPECT_EQ(countOf(*page, "</script>"), 3u);
  nlohmann::json read = blockOf(*page, "plan-data");
  EXPECT_EQ(read["model"]["name"], hostile);
  EXPECT_EQ(read.dump(), nlohmann::json::parse(toJson(plan)).dump());
  EXPECT_EQ(blockOf(*page, "view-data")["programs"][0]["name"], "train");
}

TEST(Page, LoadsNothingAndInsertsNoHtml) {
  Result<std::string> page = pageOf(samplePlan());
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
  EXPECT_TRUE(pageOf(plan));
  plan.programs.resize(1);
  plan.programs[0].kind = plan::ProgramKind::infer;
  plan.programs[0].actions.resize(1);
  EXPECT_TRUE(pageOf(plan));
}

TEST(OpTree, EveryOpButZeroingIsInOneBox) {
  Plan plan = samplePlan({.stages = 3});
  FlowGraph flow = flowOf(plan, plan.programs[0]);
  OpTree tree = nest(flow);
  std::multiset<TaskId> drawn;
  for (const TreeNode &node : tree.nodes)
    if (node.flowNode != noId) {
      EXPECT_TRUE(node.children.empty());
      drawn.insert(flow.nodes[node.flowNode].item);
    }
  for (const Chunk &chunk : plan.chunks)
    for (TaskId task : chunk.tasks) {
      bool isDrawn = chunk.phase != Phase::begin && !plan.tasks[task].as<Finish>();
      EXPECT_EQ(drawn.count(task), isDrawn ? 1u : 0u) << plan.tasks[task].name;
    }
  size_t crossing = 0;
  for (const FlowEdge &edge : flow.edges)
    crossing += edge.route == "send · pipe";
  EXPECT_EQ(crossing, 4u) << "two borders, forward and backward";
}

TEST(OpTree, NamesNestAndNumbersStayWithWhatTheyNumber) {
  FlowGraph flow;
  for (const char *name : {"blocks.0.attn.q/matmul", "blocks.0.attn.q/add", "blocks.0.attn.k/matmul",
                           "blocks.0.mlp/gelu", "blocks.1.mlp/gelu", "b0_q/matmul", "b0_k/matmul", "log_softmax"})
    flow.nodes.push_back({name, Phase::forward, 0, uint32_t(flow.nodes.size())});
  OpTree tree = nest(flow);
  std::vector<std::string> outer;
  for (uint32_t child : tree.nodes[0].children)
    outer.push_back(tree.nodes[child].title);
  EXPECT_EQ(outer, (std::vector<std::string>{"blocks.0", "blocks.1.mlp/gelu", "b0", "log_softmax"}));
  const TreeNode &block = tree.nodes[tree.nodes[0].children[0]];
  ASSERT_EQ(block.children.size(), 2u);
  EXPECT_EQ(tree.nodes[block.children[0]].title, "attn");
  EXPECT_EQ(tree.nodes[block.children[1]].title, "mlp/gelu");
}

TEST(OpTree, LinesAreDrawnWhereTheirEndsPart) {
  FlowGraph flow;
  for (const char *name : {"a.x/1st", "a.x/2nd", "a.y/op", "b/op"})
    flow.nodes.push_back({name, Phase::forward, 0, uint32_t(flow.nodes.size())});
  flow.edges = {{0, 1, 8, ""}, {1, 2, 16, ""}, {0, 3, 32, "send · pipe"}, {2, 3, 64, ""}};
  OpTree tree = nest(flow);
  ASSERT_EQ(tree.nodes[0].edges.size(), 1u);
  EXPECT_EQ(tree.nodes[0].edges[0].bytes, 96u);
  EXPECT_EQ(tree.nodes[0].edges[0].values, 2u);
  EXPECT_EQ(tree.nodes[0].edges[0].route, "send · pipe");
  const TreeNode &a = tree.nodes[tree.nodes[0].children[0]];
  ASSERT_EQ(a.edges.size(), 1u);
  EXPECT_EQ(a.edges[0].bytes, 16u);
}

TEST(OpTree, NumbersThatManyOpsReadHaveNoLines) {
  for (uint64_t bytes : {8u, 4096u}) {
    FlowGraph flow;
    for (uint32_t i = 0; i < 12; ++i) {
      flow.nodes.push_back({fmt::format("op{}", i), Phase::forward, 0, i});
      if (i > 0)
        flow.edges.push_back({0, i, bytes, ""});
    }
    EXPECT_EQ(nest(flow).nodes[0].edges.size(), bytes == 8 ? 0u : 11u);
  }
}

TEST(OpTree, LargeLevelsAreCutIntoRuns) {
  Plan plan = samplePlan({.stages = 2, .layers = 900});
  OpTree tree = nest(flowOf(plan, plan.programs[0]));
  size_t ops = 0;
  for (const TreeNode &node : tree.nodes) {
    EXPECT_LE(node.children.size(), 200u) << node.title;
    ops += node.flowNode != noId;
  }
  EXPECT_GT(ops, 9000u);
}

TEST(GraphLayout, BackwardStandsBesideForward) {
  Plan plan = samplePlan({.stages = 1, .microbatches = 1, .layers = 4});
  OpTree tree = nest(flowOf(plan, plan.programs[0]));
  LayoutStore store;
  Result<uint32_t> number = store.layOut(tree, tree.nodes[0]);
  ASSERT_TRUE(number) << number.status().message();
  const LevelLayout &layout = store.layouts()[*number];
  const std::vector<uint32_t> &children = tree.nodes[0].children;
  ASSERT_EQ(layout.boxes.size(), children.size());
  double forwardEnd = 0, backwardEnd = 0;
  for (size_t i = 0; i < children.size(); ++i) {
    EXPECT_GE(layout.boxes[i].x, 0);
    EXPECT_LE(layout.boxes[i].x, layout.width);
    EXPECT_LE(layout.boxes[i].y, layout.height);
    double &end = tree.nodes[children[i]].phase == Phase::forward ? forwardEnd : backwardEnd;
    end = std::max(end, layout.boxes[i].y);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(std::abs(layout.boxes[i].x - layout.boxes[j].x) >= boxWidth ||
                  std::abs(layout.boxes[i].y - layout.boxes[j].y) >= boxHeight)
          << "boxes overlap";
  }
  EXPECT_LE(std::abs(forwardEnd - backwardEnd), 3 * boxHeight) << "backward hangs below forward";
  for (const std::vector<Point> &line : layout.lines)
    EXPECT_EQ(line.size() % 3, 1u) << "a point and triples";
}

TEST(GraphLayout, EqualLevelsShareOneLayout) {
  Plan plan = samplePlan({.stages = 1, .layers = 50});
  OpTree tree = nest(flowOf(plan, plan.programs[0]));
  LayoutStore store;
  size_t levels = 0;
  for (const TreeNode &node : tree.nodes)
    if (node.flowNode == noId) {
      ++levels;
      ASSERT_TRUE(store.layOut(tree, node));
    }
  EXPECT_GT(levels, 50u);
  EXPECT_LT(store.layouts().size(), 12u);
}

TEST(PlanNumbers, TrafficCountsEveryMicrobatch) {
  Plan plan = samplePlan({.stages = 2, .microbatches = 4, .layers = 3});
  std::map<std::pair<uint32_t, std::string>, Traffic> traffic;
  for (const Traffic &row : trafficOf(plan, plan.programs[0]))
    traffic[{row.stage, row.op}] = row;
  EXPECT_EQ((traffic[{0, "send"}].calls), 4u);
  EXPECT_EQ((traffic[{0, "send"}].bytes), 4u * 8 * 16 * 4);
  EXPECT_EQ((traffic[{1, "all_reduce"}].calls), 4u); // three gradients and the loss
  EXPECT_EQ((traffic[{1, "all_reduce"}].bytes), 3u * 16 * 16 * 4 + 4);
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(timeText(1234.5), "1.23 ms");
}

TEST(TextSummary, SaysTheNumbersAndStripsControlCharacters) {
  Plan plan = samplePlan();
  plan.model.name = "evil\x1b[2J";
  Result<Report> report = makeReport(plan);
  ASSERT_TRUE(report) << report.status().message();
  std::string text = textSummary(*report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  for (const char *part : {"pipe=2 data=2 tensor=1: 4 ranks", "step 1.23 ms", "bubble 12.5 %", "stage 1",
                           "schedule 1f1b", "timeline   predicted, 1.23 ms", "limit", "try "})
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
  EXPECT_EQ(runTool(job + " --text --serve", out), 2);
  EXPECT_EQ(runTool(job + " --port 80", out), 2) << "a port without --serve";
  EXPECT_EQ(runTool(job + " --export pdf", out), 2);
  EXPECT_EQ(runTool(job + " " + job + " " + job, out), 2) << "three jobs";
  EXPECT_EQ(runTool(job + " --cluster cpu:nodes=1 --text", out), 2) << "one device for four ranks";
  EXPECT_EQ(runTool(job + " --cluster " + folder.path("none.json") + " --text", out), 65);
  EXPECT_EQ(runTool(job + " -o " + (folder.path("none/plan.html")), out), 74);
  EXPECT_EQ(runTool((folder.path("missing.dgx")) + " -o " + (folder.path("never.html")), out), 65);
  EXPECT_FALSE(std::filesystem::exists(folder.path("never.html")));
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", "{\"version\": 9}")}));
  EXPECT_EQ(runTool(job + " --text", out), 65);
  EXPECT_NE(readFile(out).find("version 9"), std::string::npos) << readFile(out);
}

TEST(Tool, PredictsOnTheMachinesOfTheJobOrOnThoseNamed) {
  dg::test::TemporaryFolder folder;
  std::string job = folder.path("job.dgx"), out = folder.path("out");
  Plan plan = samplePlan();
  partitioner::Cluster own = partitioner::hostCluster(4);
  own.device.launchUs = 50;
  plan.predicted = *partitioner::simulate(plan, partitioner::CostModel(own));
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", toJson(plan)),
                                          package::PackageEntry::ofText("cluster.json", partitioner::toJson(own))}));
  EXPECT_EQ(runTool(job + " --text", out), 0) << readFile(out);
  EXPECT_NE(readFile(out).find("step " + timeText(plan.predicted.stepUs)), std::string::npos) << readFile(out);
  EXPECT_EQ(readFile(out).find("other machines, where"), std::string::npos);
  Predicted there = *partitioner::simulate(plan, partitioner::CostModel(*partitioner::findCluster("a100x8")));
  EXPECT_EQ(runTool(job + " --cluster a100x8 --text", out), 0) << readFile(out);
  for (const std::string &part : {"step " + timeText(there.stepUs), "timeline   predicted, " + timeText(there.stepUs),
                                  std::string("on a100x8"), "where its step takes " + timeText(plan.predicted.stepUs)})
    EXPECT_NE(readFile(out).find(part), std::string::npos) << readFile(out) << "lacks " << part;
  ASSERT_NE(timeText(there.stepUs), timeText(plan.predicted.stepUs));
  ASSERT_TRUE(package::writePackage(job, {package::PackageEntry::ofText("plan.json", toJson(plan)),
                                          package::PackageEntry::ofText("cluster.json", "{\"version\": 1}")}));
  EXPECT_EQ(runTool(job + " --text", out), 65);
  EXPECT_NE(readFile(out).find("cluster.json"), std::string::npos) << readFile(out);
}

TEST(TextSummary, FiguresOfTheSearchAgree) {
  Plan plan = samplePlan();
  plan.search = {100, 0.25, 1, "complete", {{"data=4", 150, 4096}}};
  Result<Report> report = makeReport(plan);
  ASSERT_TRUE(report);
  std::string text = textSummary(*report);
  for (const char *part : {"it estimated this plan at 125.0 µs, 25.0 % above the bound of 100.0 µs",
                           "predicted op by op it is 1.23 ms", "data=4: estimated at 150.0 µs"})
    EXPECT_NE(text.find(part), std::string::npos) << text << "lacks " << part;
}

TEST(Tool, ReasonsAreCheckedBeforeTheyAreShown) {
  dg::test::TemporaryFolder folder;
  std::string job = folder.path("job.dgx"), out = folder.path("out"), plan = toJson(samplePlan());
  for (const auto &[text, code] :
       {std::pair<const char *, int>{R"({"blocks": [{"ops": [{"name": "a/b", "choice": 3}]}]})", 0},
        {"{}", 65},
        {"[]", 65},
        {"", 65}}) {
    ASSERT_TRUE(package::writePackage(
        job, {package::PackageEntry::ofText("plan.json", plan), package::PackageEntry::ofText("explain.json", text)}));
    EXPECT_EQ(runTool(job + " --text", out), code) << text << readFile(out);
  }
}

TEST(Tool, PhasesAreCheckedBeforeTheyAreDrawn) {
  dg::test::TemporaryFolder folder;
  std::string job = folder.path("job.dgx"), out = folder.path("out"), plan = toJson(samplePlan());
  const char *good = R"({"version":1,"phases":[{"pass":"p","summary":"s","added":{},"removed":{},
                         "ops":[["a/x","dg.x","train","forward",0],["b/y","dg.y","train","backward",1]],"flow":[[0,1]]}]})";
  auto exitCodeWith = [&](const std::string &phases) {
    EXPECT_TRUE(package::writePackage(
        job, {package::PackageEntry::ofText("plan.json", plan), package::PackageEntry::ofText("phases.json", phases)}));
    return runTool(job + " -o " + folder.path("page.html"), out);
  };
  EXPECT_EQ(exitCodeWith(good), 0) << readFile(out);
  for (const char *bad : {"", "[]", R"({"version":2,"phases":[]})", R"({"version":1})", R"({"version":1,"phases":[3]})",
                          R"({"version":1,"phases":[{"ops":[],"flow":[],"added":{"a":-1},"removed":{}}]})",
                          R"({"version":1,"phases":[{"ops":[["a"]],"flow":[],"added":{},"removed":{}}]})",
                          R"({"version":1,"phases":[{"ops":[],"flow":[[0,1]],"added":{},"removed":{}}]})"}) {
    EXPECT_EQ(exitCodeWith(bad), 65) << bad;
    EXPECT_NE(readFile(out).find("phases.json"), std::string::npos) << readFile(out);
  }
}
