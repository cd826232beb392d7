// SPDX-License-Identifier: Apache-2.0
// Proves the multilevel acyclic partition: contraction keeps graphs acyclic, every edge goes forward, limits are kept,
// small graphs are cut as well as exhaustive search cuts them, large ones hardly worse than METIS cuts them without the
// acyclicity and better than METIS repaired. The models of the families are held against METIS in passes.
#include "partitioner/search/AcyclicPartition.h"
#include "partitioner/search/AcyclicCoarsening.h"
#include "partitioner/search/OrderedCuts.h"
#include "tests/unit/partitioner/MetisOracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace dg;
using namespace dg::partitioner;

namespace {

using Edge = WeightedDag::Edge;

/// Edges from lower to higher numbers.
WeightedDag randomDag(std::mt19937_64 &random, uint32_t numNodes, uint32_t numEdges) {
  std::vector<uint64_t> weights;
  for (uint32_t v = 0; v < numNodes; ++v)
    weights.push_back(1 + random() % 20);
  std::vector<Edge> edges;
  for (uint32_t e = 0; e < numEdges; ++e) {
    uint32_t a = uint32_t(random() % numNodes), b = uint32_t(random() % numNodes);
    if (a != b)
      edges.push_back({std::min(a, b), std::max(a, b), 1 + random() % 50});
  }
  return {std::move(weights), std::move(edges)};
}

/// A network of branches: layers of nodes that read near ones of the layer before, now and then one of an earlier
/// layer.
WeightedDag layeredDag(std::mt19937_64 &random, uint32_t numLayers, uint32_t width) {
  std::vector<uint64_t> weights(size_t(numLayers) * width);
  for (uint64_t &weight : weights)
    weight = 10 + random() % 90;
  std::vector<Edge> edges;
  for (uint32_t layer = 1; layer < numLayers; ++layer)
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t node = layer * width + i;
      for (int reads = 0; reads < 2; ++reads) {
        uint32_t near = (i + width + uint32_t(random() % 3) - 1) % width;
        edges.push_back({(layer - 1) * width + near, node, 1 + random() % 100});
      }
      if (random() % 8 == 0)
        edges.push_back({uint32_t(random() % layer) * width + i, node, 1 + random() % 100});
    }
  return {std::move(weights), std::move(edges)};
}

void expectValid(const WeightedDag &dag, const AcyclicPartition &partition, uint32_t numParts, uint64_t maxWeight) {
  ASSERT_EQ(partition.parts.size(), dag.numNodes());
  std::vector<uint32_t> counts(numParts);
  for (uint32_t part : partition.parts) {
    ASSERT_LT(part, numParts);
    ++counts[part];
  }
  for (uint32_t count : counts)
    EXPECT_GT(count, 0u);
  for (const Edge &edge : dag.edges())
    ASSERT_LE(partition.parts[edge.from], partition.parts[edge.to]);
  EXPECT_EQ(partition.cut, cutWeight(dag, partition.parts));
  std::vector<uint64_t> weights = partWeights(dag, partition.parts, numParts);
  EXPECT_EQ(partition.largestWeight, *std::max_element(weights.begin(), weights.end()));
  EXPECT_LE(partition.largestWeight, maxWeight);
}

/// The least cut of all acyclic partitions into non-empty parts within the limit, by trying every one.
uint64_t leastCut(const WeightedDag &dag, uint32_t numParts, uint64_t maxWeight) {
  const uint32_t n = dag.numNodes();
  std::vector<uint32_t> parts(n);
  uint64_t best = UINT64_MAX;
  auto visit = [&](auto &self, uint32_t node) -> void { // nodes are numbered in a topological order
    if (node == n) {
      std::vector<uint64_t> weights = partWeights(dag, parts, numParts);
      bool isGood = std::all_of(weights.begin(), weights.end(), [&](uint64_t w) { return w > 0 && w <= maxWeight; });
      if (isGood)
        best = std::min(best, cutWeight(dag, parts));
      return;
    }
    uint32_t first = 0;
    for (const WeightedDag::Arc &arc : dag.ins(node))
      first = std::max(first, parts[arc.node]);
    for (parts[node] = first; parts[node] < numParts; ++parts[node])
      self(self, node + 1);
  };
  visit(visit, 0);
  return best;
}

uint64_t limitOf(const WeightedDag &dag, uint32_t numParts, double imbalance) {
  auto limit = uint64_t(std::floor(double(dag.totalWeight()) / numParts * (1 + imbalance)));
  return std::max(limit, leastLargestWeight(dag, dag.topologicalOrder(), numParts));
}

} // namespace

// Whatever is contracted, no cycle comes of it, and nothing of the weights is lost.
TEST(AcyclicPartition, CoarseningKeepsGraphsAcyclic) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    WeightedDag dag = seed % 2 ? randomDag(random, 60, 40 + uint32_t(random() % 200)) : layeredDag(random, 12, 6);
    for (int level = 0; level < 20; ++level) {
      auto coarser = coarsen(dag, nullptr, dag.totalWeight() / 4, random);
      if (!coarser)
        break;
      ASSERT_LT(coarser->dag.numNodes(), dag.numNodes());
      ASSERT_EQ(coarser->dag.topologicalOrder().size(), coarser->dag.numNodes()) << "a cycle, seed " << seed;
      ASSERT_EQ(coarser->dag.totalWeight(), dag.totalWeight());
      dag = std::move(coarser->dag);
    }
  }
}

// The cut of one order is the best contiguous one: exhaustive search over all places agrees.
TEST(AcyclicPartition, CutsAnOrderExactly) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    WeightedDag dag = randomDag(random, 10, 20);
    std::vector<uint32_t> order = drawOrder(dag, OrderKind(seed % 3), random);
    ASSERT_EQ(order.size(), dag.numNodes());
    const uint64_t limit = leastLargestWeight(dag, order, 3) * (100 + seed % 30) / 100;
    uint64_t best = UINT64_MAX, lightest = UINT64_MAX;
    for (uint32_t a = 1; a < 9; ++a)
      for (uint32_t b = a + 1; b < 10; ++b) {
        std::vector<uint32_t> parts(10);
        for (uint32_t i = 0; i < 10; ++i)
          parts[order[i]] = (i >= a) + (i >= b);
        std::vector<uint64_t> weights = partWeights(dag, parts, 3);
        uint64_t heaviest = *std::max_element(weights.begin(), weights.end());
        lightest = std::min(lightest, heaviest);
        if (heaviest <= limit)
          best = std::min(best, cutWeight(dag, parts));
      }
    EXPECT_EQ(leastLargestWeight(dag, order, 3), lightest) << "seed " << seed;
    auto cut = cutOrder(dag, order, {3, limit});
    ASSERT_TRUE(cut) << "seed " << seed;
    EXPECT_EQ(cutWeight(dag, *cut), best) << "seed " << seed;
    EXPECT_FALSE(cutOrder(dag, order, {3, lightest - 1})) << "seed " << seed;
  }
}

// Small graphs: the optimum of all acyclic partitions nearly always, and never far from it.
TEST(AcyclicPartition, EqualsExhaustiveSearch) {
  int numOptimal = 0, numCases = 200;
  double worst = 1;
  for (int seed = 0; seed < numCases; ++seed) {
    std::mt19937_64 random{uint64_t(seed)};
    WeightedDag dag = randomDag(random, 11, 12 + uint32_t(random() % 14));
    const uint32_t numParts = 2 + uint32_t(seed % 2);
    AcyclicOptions options;
    options.numParts = numParts;
    options.imbalance = 0.1;
    Result<AcyclicPartition> found = partitionAcyclic(dag, options);
    ASSERT_TRUE(found) << found.status().message();
    const uint64_t limit = limitOf(dag, numParts, options.imbalance), least = leastCut(dag, numParts, limit);
    expectValid(dag, *found, numParts, limit);
    EXPECT_GE(found->cut, least) << "seed " << seed;
    numOptimal += found->cut == least;
    if (least > 0)
      worst = std::max(worst, double(found->cut) / double(least));
  }
  std::printf("%d of %d optimal, worst %.1f %% above\n", numOptimal, numCases, 100 * (worst - 1));
  EXPECT_GE(numOptimal, numCases * 95 / 100);
  EXPECT_LE(worst, 1.25);
}

// Two branches that are written in turns: each part gets one of them, and only what joins them is cut.
TEST(AcyclicPartition, FindsBranches) {
  std::vector<Edge> edges;
  constexpr uint32_t length = 50;
  for (uint32_t i = 1; i < length; ++i)
    for (uint32_t branch = 0; branch < 2; ++branch)
      edges.push_back({2 * (i - 1) + branch, 2 * i + branch, 1000});
  edges.push_back({2 * length - 2, 2 * length, 10});
  edges.push_back({2 * length - 1, 2 * length, 10});
  WeightedDag dag(std::vector<uint64_t>(2 * length + 1, 100), std::move(edges));
  Result<AcyclicPartition> found = partitionAcyclic(dag, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cut, 10u);
}

// Random networks of branches against METIS with the same imbalance: never worse than METIS repaired, in the mean close
// to METIS that need not be acyclic.
TEST(AcyclicPartition, HeldAgainstMetis) {
  double logSum = 0, logRepaired = 0;
  int numCases = 0, numRepaired = 0;
  constexpr double imbalance = 0.03;
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (uint32_t numParts : {2u, 4u, 8u}) {
      std::mt19937_64 random(seed);
      WeightedDag dag = layeredDag(random, 60 + uint32_t(random() % 80), 4 + uint32_t(random() % 8));
      std::vector<uint32_t> metis = partitionByMetis(dag, numParts, imbalance);
      const uint64_t limit = limitOf(dag, numParts, imbalance);
      AcyclicOptions options;
      options.numParts = numParts;
      options.imbalance = imbalance;
      Result<AcyclicPartition> found = partitionAcyclic(dag, options);
      ASSERT_TRUE(found) << found.status().message();
      expectValid(dag, *found, numParts, limit);
      const uint64_t theirs = cutWeight(dag, metis);
      std::vector<uint32_t> repaired = repairAcyclic(dag, metis, numParts, limit);
      logSum += std::log(double(found->cut) / double(theirs));
      ++numCases;
      std::printf("seed %lu, %u nodes, %u edges, %u parts: cut %lu, METIS %lu (%+.1f %%), repaired %ld\n", seed,
                  dag.numNodes(), uint32_t(dag.edges().size()), numParts, found->cut, theirs,
                  100 * (double(found->cut) / double(theirs) - 1),
                  repaired.empty() ? -1L : long(cutWeight(dag, repaired)));
      if (!repaired.empty()) {
        EXPECT_LE(found->cut, cutWeight(dag, repaired)) << "seed " << seed;
        logRepaired += std::log(double(found->cut) / double(cutWeight(dag, repaired)));
        ++numRepaired;
      }
    }
  const double mean = std::exp(logSum / numCases), meanRepaired = std::exp(logRepaired / std::max(1, numRepaired));
  std::printf("%d cases: %.3f of METIS's cut, %.3f of METIS repaired (%d within the limit)\n", numCases, mean,
              meanRepaired, numRepaired);
  EXPECT_LE(mean, 1.25);
  EXPECT_LT(meanRepaired, 1);
}

// The same graph gives the same parts; a large one takes seconds.
TEST(AcyclicPartition, IsDeterministic) {
  std::mt19937_64 random(5);
  WeightedDag dag = layeredDag(random, 400, 10);
  AcyclicOptions options;
  options.numParts = 8;
  options.numTries = 2;
  Result<AcyclicPartition> first = partitionAcyclic(dag, options), second = partitionAcyclic(dag, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->parts, second->parts);
}

// What cannot be is refused in words.
TEST(AcyclicPartition, RefusesInWords) {
  WeightedDag chain({1, 1, 1}, {{0, 1, 1}, {1, 2, 1}});
  EXPECT_EQ(partitionAcyclic(chain, {.numParts = 4}).status().message(),
            "4 parts were asked for of a graph of 3 nodes: use 1 to 3");
  EXPECT_EQ(partitionAcyclic(chain, {.numParts = 0}).status().message(),
            "0 parts were asked for of a graph of 3 nodes: use 1 to 3");
  WeightedDag circle({1, 1, 1}, {{0, 1, 1}, {1, 2, 1}, {2, 1, 1}});
  Status status = partitionAcyclic(circle, {}).status();
  EXPECT_EQ(status.kind(), ErrorKind::badInput);
  EXPECT_EQ(status.message(), "the graph has a cycle through 2 of its 3 nodes; every op must come after the ops whose "
                              "results it uses");
}
