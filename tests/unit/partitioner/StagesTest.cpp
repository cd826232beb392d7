// SPDX-License-Identifier: Apache-2.0
// Proves that the cut into stages is optimal (against exhaustive search), legal, and quick.
#include "partitioner/search/Stages.h"
#include "tests/unit/partitioner/TimeLimit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <map>
#include <random>
#include <set>

using namespace dg;
using namespace dg::partitioner;

/// A cluster on which a node of f flops takes f microseconds.
static CostModel unitCosts() {
  Cluster cluster = hostCluster(1);
  cluster.device.flopsPerSecond = {{plan::DType::f32, 1e6}};
  cluster.device.efficiency = 1;
  cluster.device.launchUs = 0;
  return CostModel(cluster);
}

/// Time and crossing bytes of an assignment, straight from the definition.
static std::pair<double, uint64_t> measure(const Graph &graph, const std::vector<uint32_t> &stages,
                                           uint32_t numStages) {
  std::vector<double> time(numStages);
  for (size_t v = 0; v < stages.size(); ++v)
    time[stages[v]] += graph.nodes()[v].flops;
  uint64_t crossing = 0;
  std::map<std::pair<NodeId, uint32_t>, std::pair<uint32_t, uint64_t>> values; // -> last stage, bytes
  for (const Edge &edge : graph.edges()) {
    auto &[last, bytes] = values[{edge.from, edge.result}];
    last = std::max(last, stages[edge.to]);
    bytes = edge.bytes;
  }
  for (const auto &[key, value] : values)
    crossing += (value.first - stages[key.first]) * value.second;
  return {*std::max_element(time.begin(), time.end()), crossing};
}

/// The rule for free nodes, straight from the definition.
static void placeFree(const Graph &graph, std::vector<uint32_t> &stages, const std::vector<bool> &isSet,
                      const std::vector<NodeId> &order) {
  std::vector<bool> isPlaced = isSet;
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    if (isSet[*v])
      continue;
    for (const Edge &edge : graph.edges())
      if (edge.from == *v && isPlaced[edge.to]) {
        stages[*v] = isPlaced[*v] ? std::min(stages[*v], stages[edge.to]) : stages[edge.to];
        isPlaced[*v] = true;
      }
  }
  for (NodeId v : order)
    if (!isPlaced[v]) {
      stages[v] = 0;
      for (const Edge &edge : graph.edges())
        if (edge.to == v)
          stages[v] = std::max(stages[v], stages[edge.from]);
    }
}

static Graph makeRandomGraph(std::mt19937 &random, uint32_t numNodes) {
  Graph graph;
  for (uint32_t v = 0; v < numNodes; ++v)
    graph.addNode({.name = fmt::format("op{}", v), .flops = random() % 4 ? double(1 + random() % 6) : 0});
  for (uint32_t a = 0; a < numNodes; ++a) {
    uint64_t bytes = 4 * (1 + random() % 8);
    for (uint32_t b = a + 1; b < numNodes; ++b)
      if (random() % 4 == 0)
        graph.addEdge({a, b, bytes});
  }
  return graph;
}

// Largest stage time and crossing bytes are those of the best of all contiguous cuts; every edge goes forward; no stage
// is empty.
TEST(StagesTest, EqualsExhaustiveSearch) {
  const uint32_t seed = 20261116;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  CostModel costs = unitCosts();
  int numChecked = 0;
  for (int round = 0; round < 2000; ++round) {
    Graph graph = makeRandomGraph(random, 2 + random() % 12);
    const size_t n = graph.nodes().size();
    std::vector<NodeId> order = *graph.topologicalOrder(), costly;
    std::vector<bool> isCostly(n);
    for (NodeId v : order)
      if (!graph.nodes()[v].isFree()) {
        costly.push_back(v);
        isCostly[v] = true;
      }
    uint32_t numStages = 1 + random() % 4;
    Result<std::vector<uint32_t>> found = balanceStages(graph, numStages, costs);
    if (numStages > 1 && numStages > costly.size()) {
      ASSERT_FALSE(found);
      continue;
    }
    if (costly.empty())
      continue;
    ASSERT_TRUE(found) << found.status().message();
    std::pair<double, uint64_t> best{INFINITY, 0};
    for (uint32_t cuts = 0; cuts < 1u << (costly.size() - 1); ++cuts) {
      if (__builtin_popcount(cuts) != int(numStages) - 1)
        continue;
      std::vector<uint32_t> stages(n);
      for (size_t i = 0, stage = 0; i < costly.size(); ++i) {
        stages[costly[i]] = uint32_t(stage);
        stage += cuts >> i & 1;
      }
      placeFree(graph, stages, isCostly, order);
      best = std::min(best, measure(graph, stages, numStages));
    }
    EXPECT_EQ(measure(graph, *found, numStages), best) << "round " << round;
    for (const Edge &edge : graph.edges())
      EXPECT_LE((*found)[edge.from], (*found)[edge.to]);
    std::set<uint32_t> used;
    for (NodeId v : costly)
      used.insert((*found)[v]);
    EXPECT_EQ(used.size(), numStages);
    ++numChecked;
  }
  EXPECT_GT(numChecked, 1000);
}

// A parameter goes to the stage that uses it first, a result that nobody uses stays with its producer.
TEST(StagesTest, FreeNodesFollowTheirFirstConsumer) {
  Graph graph;
  NodeId w1 = graph.addNode({.name = "w1"}), w2 = graph.addNode({.name = "w2"}), w2t = graph.addNode({.name = "w2t"});
  NodeId a = graph.addNode({.name = "a", .flops = 5}), b = graph.addNode({.name = "b", .flops = 5});
  NodeId out = graph.addNode({.name = "out"}), alone = graph.addNode({.name = "alone"});
  graph.addEdge({w1, a, 4});
  graph.addEdge({w2, w2t, 4});
  graph.addEdge({w2t, b, 4});
  graph.addEdge({a, b, 4});
  graph.addEdge({b, out, 4});
  std::vector<uint32_t> stages = *balanceStages(graph, 2, unitCosts());
  EXPECT_EQ(stages[w1], 0u);
  EXPECT_EQ(stages[w2], 1u);
  EXPECT_EQ(stages[w2t], 1u);
  EXPECT_EQ(stages[a], 0u);
  EXPECT_EQ(stages[b], 1u);
  EXPECT_EQ(stages[out], 1u);
  EXPECT_EQ(stages[alone], 0u);
}

// Asking for more stages than there are ops with a cost is a usage error that names both numbers.
TEST(StagesTest, RejectsMoreStagesThanOps) {
  Graph graph;
  graph.addNode({.name = "w"});
  graph.addNode({.name = "a", .flops = 1});
  graph.addNode({.name = "b", .bytes = 8});
  Result<std::vector<uint32_t>> stages = balanceStages(graph, 3, unitCosts());
  ASSERT_FALSE(stages);
  EXPECT_EQ(stages.status().kind(), ErrorKind::usage);
  EXPECT_NE(stages.status().message().find("3 pipeline stages"), std::string::npos) << stages.status().message();
  EXPECT_NE(stages.status().message().find("only 2 ops"), std::string::npos) << stages.status().message();
  EXPECT_FALSE(balanceStages(graph, 0, unitCosts()));
}

// A cycle is passed on as it is.
TEST(StagesTest, RejectsCycle) {
  Graph graph;
  graph.addNode({.name = "a", .flops = 1});
  graph.addNode({.name = "b", .flops = 1});
  graph.addEdge({0, 1, 4});
  graph.addEdge({1, 0, 4});
  ASSERT_FALSE(balanceStages(graph, 2, unitCosts()));
}

// 20,000 nodes into 64 stages take less than two seconds, and the stages are within one node of equal.
TEST(StagesTest, IsQuick) {
  std::mt19937 random(1);
  Graph graph;
  double total = 0;
  for (uint32_t v = 0; v < 20000; ++v) {
    double flops = double(1 + random() % 100);
    total += flops;
    graph.addNode({.name = "op", .flops = flops});
    if (v > 0)
      graph.addEdge({v - 1, v, 4 * (1 + random() % 100)});
    if (v > 10)
      graph.addEdge({v - 1 - uint32_t(random() % 10), v, 4, 1});
  }
  std::clock_t start = std::clock();
  std::vector<uint32_t> stages = *balanceStages(graph, 64, unitCosts());
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  std::cout << "20000 nodes, 64 stages: " << seconds << " s\n";
  EXPECT_LT(seconds, 2 * timeLimitFactor);
  EXPECT_LE(measure(graph, stages, 64).first, total / 64 + 100);
}
