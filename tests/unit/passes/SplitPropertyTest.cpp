// SPDX-License-Identifier: Apache-2.0
// Proves on random models, meshes, batches and micro-batches that a split program trains as the whole one does, or that
// a pass refuses the mesh in words. DG_TEST_SEED and DG_TEST_CASES choose other ones and more.
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/RandomModel.h"
#include "tests/unit/passes/SplitComparison.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::passes::test;

namespace {

constexpr int defaultNumCases = 30;

struct RandomCase {
  RandomModel model;
  Training training;
  Split split;
};

RandomCase drawCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](auto... choices) {
    std::common_type_t<decltype(choices)...> all[] = {choices...};
    return all[random() % sizeof...(choices)];
  };
  RandomCase drawn;
  drawn.model = drawModel(random);
  int64_t data = pick(1, 1, 2, 3, 4), tensor = pick(1, 1, 2, 3, 4), pipe = pick(1, 1, 2, 3, 4);
  drawn.split.mesh =
      "data=" + std::to_string(data) + ",tensor=" + std::to_string(tensor) + ",pipe=" + std::to_string(pipe);
  drawn.split.microbatches = pick(1, 1, 2, 3, 4);
  int64_t batch = data * drawn.split.microbatches + pick(0, 1, 2, 3, 5);
  drawn.training.sampleCounts = {batch, batch, 1 + int64_t(random() % uint64_t(batch)), batch};
  drawn.training.numEvaluated = 1 + int64_t(random() % uint64_t(batch));
  drawn.training.optimizer = pick("sgd:lr=0.05", "sgd:lr=0.05,momentum=0.9,nesterov=1,weight_decay=0.01",
                                  "adam:lr=0.003,eps=1e-4", "adamw:lr=0.003,eps=1e-4");
  drawn.training.indexBound = drawn.model.indexBound;
  drawn.training.seed = seed;
  return drawn;
}

TEST(SplitProperty, RandomModels) {
  uint64_t seed = dg::ir::test::suiteSeed();
  const char *text = std::getenv("DG_TEST_CASES");
  int numCases = text ? std::atoi(text) : defaultNumCases, numRejected = 0;
  for (int index = 0; index < numCases; ++index) {
    RandomCase drawn = drawCase(seed + uint64_t(index));
    SCOPED_TRACE("DG_TEST_SEED=" + std::to_string(seed + uint64_t(index)) + " DG_TEST_CASES=1, " + drawn.split.mesh +
                 ", micro-batches " + std::to_string(drawn.split.microbatches) + ", " + drawn.training.optimizer +
                 ", batch " + std::to_string(drawn.training.sampleCounts[0]) + "\n" + drawn.model.text);
    auto context = dg::ir::test::makeContext();
    OwningOpRef<ModuleOp> model = dg::ir::test::parse(*context, drawn.model.text);
    ASSERT_TRUE(model);
    Attempt whole = trainWhole(*model, drawn.training);
    if (!whole.outcome && isClearRejection(whole.error))
      continue; // a model whose parameters all happen to be frozen
    ASSERT_TRUE(whole.outcome) << whole.error;
    Attempt split = splitAndTrain(*model, drawn.training, drawn.split);
    if (split.outcome)
      EXPECT_EQ(firstDifference(*whole.outcome, *split.outcome, 1e-10), "");
    else
      EXPECT_TRUE(isClearRejection(split.error)) << split.error;
    numRejected += !split.outcome;
  }
  std::cout << numCases << " cases, " << numRejected << " of them refused in words\n";
  EXPECT_LT(numRejected, numCases == 1 ? 2 : numCases) << "every case was refused: nothing was compared";
}

TEST(SplitProperty, ParameterCutOtherwiseThanItsGradient) {
  // The skip makes w2's gradient come cut by rows, while the weight itself is cut by columns: the update must follow
  // the weight, and must not add it up over micro-batches.
  constexpr const char *text = R"(
    dg.graph @loss(%x: tensor<?x4xf32>, %y: tensor<?xi32>) {
      %w1 = dg.parameter "w1" tensor<4x4xf32> uniform 0.4
      %b1 = dg.parameter "b1" tensor<4xf32> uniform 0.2
      %h1 = dg.linear %x, %w1, %b1
      %s1 = dg.scale %h1 {factor = 0.7}
      %w2 = dg.parameter "w2" tensor<4x4xf32> uniform 0.4
      %h2 = dg.linear %s1, %w2
      %r2 = dg.relu %h2
      %sum = dg.add %r2, %s1
      %w3 = dg.parameter "w3" tensor<4x4xf32> uniform 0.4
      %b3 = dg.parameter "b3" tensor<4xf32> uniform 0.2
      %h3 = dg.linear %sum, %w3, %b3
      %loss = dg.cross_entropy %h3, %y
      dg.return %loss
    })";
  auto context = dg::ir::test::makeContext();
  OwningOpRef<ModuleOp> model = dg::ir::test::parse(*context, text);
  ASSERT_TRUE(model);
  Training training{.optimizer = "adam:lr=0.01", .sampleCounts = {8, 8, 5}, .indexBound = 4};
  Attempt whole = trainWhole(*model, training);
  ASSERT_TRUE(whole.outcome) << whole.error;
  for (int64_t microbatches : {1, 2, 4}) {
    Attempt split = splitAndTrain(*model, training, {"tensor=2", microbatches});
    ASSERT_TRUE(split.outcome) << split.error;
    EXPECT_EQ(firstDifference(*whole.outcome, *split.outcome, 1e-10), "");
  }
}

} // namespace
