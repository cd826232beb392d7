// SPDX-License-Identifier: Apache-2.0
// Holds the acyclic partition of real models, backward work folded onto forward ops, against METIS with the same
// imbalance: at most a quarter above its cut, which need not be acyclic, and never above METIS repaired to be so.
#include "ir/build/Families.h"
#include "partitioner/search/AcyclicPartition.h"
#include "partitioner/search/OrderedCuts.h"
#include "partitioner/search/StageOrder.h"
#include "passes/Pipeline.h"
#include "passes/partition/ExtractModel.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/partitioner/MetisOracle.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace dg;
using namespace dg::partitioner;

namespace {

constexpr double imbalance = 0.03;

WeightedDag dagOfFamily(const char *spec, int64_t batch) {
  auto context = ir::test::makeContext();
  auto module = ir::buildFamily(spec, *context);
  EXPECT_TRUE(succeeded(module)) << spec;
  PassManager manager(context.get());
  passes::PipelineOptions options;
  options.batch = batch;
  options.optimizer = "sgd:lr=0.01";
  passes::buildWholePipeline(manager, options);
  EXPECT_TRUE(succeeded(manager.run(**module))) << spec;
  FailureOr<Model> model = passes::extractModel(**module);
  EXPECT_TRUE(succeeded(model)) << spec;
  return scaledForMetis(dagOf(*model, CostModel(hostCluster(1))).dag);
}

} // namespace

TEST(AcyclicModels, HeldAgainstMetis) {
  double logSum = 0;
  int numCases = 0;
  for (auto [spec, batch] : {std::pair{"mlp:784-1024-1024-10", 64},
                             {"lenet", 64},
                             {"resnet:18", 8},
                             {"resnet:50", 8},
                             {"bert:layers=6,hidden=256,heads=4,seq=64,vocab=1000", 8},
                             {"gpt:layers=12,hidden=384,heads=6,seq=128,vocab=2000", 8}}) {
    WeightedDag dag = dagOfFamily(spec, batch);
    for (uint32_t numParts : {2u, 4u, 8u}) {
      if (dag.numNodes() < 4 * numParts)
        continue;
      // Parts cannot be made more even than by one op: where the heaviest is more than the imbalance, it counts; where
      // it is most of a part, what contiguous parts need.
      const double mean = double(dag.totalWeight()) / numParts;
      uint64_t heaviestNode = 0;
      for (uint32_t v = 0; v < dag.numNodes(); ++v)
        heaviestNode = std::max(heaviestNode, dag.weight(v));
      const double needed = double(leastLargestWeight(dag, dag.topologicalOrder(), numParts)) / mean - 1;
      const double oneNode = double(heaviestNode) / mean;
      const double allowed = std::max(imbalance, oneNode < 0.5 ? oneNode : needed);
      std::vector<uint32_t> metis = partitionByMetis(dag, numParts, allowed);
      std::vector<uint64_t> metisWeights = partWeights(dag, metis, numParts);
      const uint64_t heaviest = *std::max_element(metisWeights.begin(), metisWeights.end());
      const uint64_t theirs = cutWeight(dag, metis);
      AcyclicOptions options;
      options.numParts = numParts;
      options.imbalance = allowed;
      Result<AcyclicPartition> found = partitionAcyclic(dag, options);
      ASSERT_TRUE(found) << found.status().message();
      for (const WeightedDag::Edge &edge : dag.edges())
        ASSERT_LE(found->parts[edge.from], found->parts[edge.to]);
      EXPECT_LE(double(found->largestWeight), mean * (1 + allowed) + 1);
      std::vector<uint32_t> repaired = repairAcyclic(dag, metis, numParts, uint64_t(mean * (1 + allowed)) + 1);
      std::printf(
          "%s, %u nodes, %zu edges, %u parts: cut %lu, heaviest part %.3f of the mean; METIS %lu (%+.1f %%), %.3f; "
          "METIS repaired %ld\n",
          spec, dag.numNodes(), dag.edges().size(), numParts, found->cut, double(found->largestWeight) / mean, theirs,
          100 * (double(found->cut) / double(theirs) - 1), double(heaviest) / mean,
          repaired.empty() ? -1L : long(cutWeight(dag, repaired)));
      EXPECT_LE(double(found->cut), 1.25 * double(theirs)) << spec << " in " << numParts;
      if (!repaired.empty())
        EXPECT_LE(found->cut, cutWeight(dag, repaired)) << spec << " in " << numParts;
      logSum += std::log(double(found->cut) / double(theirs));
      ++numCases;
    }
  }
  std::printf("%d cases: %.3f of METIS's cut in the mean\n", numCases, std::exp(logSum / numCases));
  EXPECT_GE(numCases, 12);
}
