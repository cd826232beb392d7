// SPDX-License-Identifier: Apache-2.0
// Proves that a split program trains as the whole one does: each loss, each parameter at the end and the evaluation, in
// f64 on simulated ranks, for the four kinds of model, over data, tensor and pipe, with and without micro-batches.
#include "passes/Pipeline.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitCases.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace dg::passes::test;

namespace {

TEST(SplitEquivalence, Mlp) { expectEqualOnMeshes(mlpCase(100), allMeshes()); }
TEST(SplitEquivalence, WideMlpWithAdam) { expectEqualOnMeshes(wideCase(100), allMeshes()); }
TEST(SplitEquivalence, GptWithAdamW) { expectEqualOnMeshes(gptCase(100), allMeshes()); }
TEST(SplitEquivalence, LlamaWithAdamW) { expectEqualOnMeshes(llamaCase(20), allMeshes(), {1, 2}); }
TEST(SplitEquivalence, Lenet) { expectEqualOnMeshes(lenetCase(6), allMeshes()); }

TEST(SplitEquivalence, UnevenShards) {
  // Ten samples over four ranks are 3/3/2/2; in two micro-batches of five 2/1/1/1.
  ModelCase model = wideCase(20);
  model.training.sampleCounts.assign(20, 10);
  expectEqualOnMeshes(model, {"data=4", "data=4,pipe=2", "data=4,tensor=2"}, {1, 2});
}

TEST(SplitEquivalence, LastBatchIsSmaller) {
  // Each epoch ends with fewer samples than rows: some ranks and some micro-batches get none.
  ModelCase model = wideCase(20);
  model.training.sampleCounts = {12, 12, 5, 12, 12, 1, 12, 7};
  model.training.numEvaluated = 3;
  expectEqualOnMeshes(model, {"", "data=4", "pipe=2", "data=2,tensor=2,pipe=2"}, {1, 2, 4});
}

TEST(SplitEquivalence, PaddingPoisonsNothing) {
  // Values that a row of zeros would make infinite or NaN, in smaller last batches and uneven shards.
  constexpr const char *text = R"(
    dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?x2xf32>) {
      %square = dg.mul %x, %x
      %log = dg.log %square
      %sum = dg.reduce_sum %square {dims = array<i64: 1>, keep}
      %norm = dg.sqrt %sum
      %unit = dg.div %log, %norm
      %w1 = dg.parameter "w1" tensor<8x6xf32> uniform 0.4
      %w2 = dg.parameter "w2" tensor<2x8xf32> uniform 0.4
      %h = dg.linear %unit, %w1
      %t = dg.tanh %h
      %p = dg.linear %t, %w2
      %loss = dg.mse %p, %y
      dg.return %loss
    })";
  expectTextEqual(text, {10, 10, 3, 10, 1}, {"", "data=4", "data=2,pipe=2"}, {1, 2});
}

TEST(SplitEquivalence, GradientOfALaterStage) {
  // t lies on the stage of its first reader, which has no gradient for it; the last one has.
  constexpr const char *text = R"(
    dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?x6xf32>) {
      %t = dg.parameter "t" tensor<6xf32> uniform 0.4
      %w1 = dg.parameter "w1" tensor<6x6xf32> uniform 0.4
      %w2 = dg.parameter "w2" tensor<6x6xf32> uniform 0.4
      %above = dg.compare %x, %t {predicate = "gt"}
      %gate = dg.cast %above {to = f32}
      %gated = dg.mul %x, %gate
      %h = dg.linear %gated, %w1
      %a = dg.tanh %h
      %p = dg.linear %a, %w2
      %q = dg.mul %p, %t
      %loss = dg.mse %q, %y
      dg.return %loss
    })";
  expectTextEqual(text, {8, 8, 8, 5}, {"pipe=2", "pipe=3", "data=2,pipe=2"}, {1, 2, 4});
}

TEST(SplitEquivalence, BatchNormOverDataAndStages) {
  // The last step has fewer samples than rows: padding must not enter the statistics.
  ModelCase model = resnetCase(2);
  model.training.sampleCounts = {6, 5};
  model.training.numEvaluated = 4;
  expectEqualToOneRank(model, {"data=2", "tensor=2", "pipe=2", "data=2,pipe=2"}, {1});
  expectEqualToOneRank(model, {"data=3", "pipe=3"}, {2});
}

TEST(SplitEquivalence, NormsOverAllParametersAndShards) {
  // One norm over the gradients of all stages and shards, and one for each parameter.
  for (const char *optimizer : {"adamw:lr=0.003,clip_norm=0.05,clip_value=0.02", "lamb:lr=0.003,weight_decay=0.1"}) {
    SCOPED_TRACE(optimizer);
    ModelCase model = wideCase(10);
    model.training.optimizer = optimizer;
    expectEqualOnMeshes(model, allMeshes(), {1, 2});
  }
}

TEST(SplitEquivalence, ZeroCutsStateGradientsAndParameters) {
  // Every optimizer with state, one without, and norms over what is cut; GPT's table is used on two stages.
  const std::vector<std::string> meshes = {"data=2", "data=4", "data=2,tensor=2", "data=2,pipe=2"};
  for (int64_t zero : {1, 2, 3}) {
    SCOPED_TRACE("zero " + std::to_string(zero));
    expectEqualOnMeshes(gptCase(4), meshes, {1, 2}, {.zero = zero});
    for (const char *optimizer : {"sgd:lr=0.05", "sgd:lr=0.05,momentum=0.9",
                                  "adamw:lr=0.003,clip_norm=0.05,clip_value=0.02", "lamb:lr=0.003,weight_decay=0.1"}) {
      SCOPED_TRACE(optimizer);
      ModelCase model = wideCase(4);
      model.training.optimizer = optimizer;
      expectEqualOnMeshes(model, meshes, {1, 2}, {.zero = zero});
    }
    ModelCase normed = resnetCase(2);
    expectEqualToOneRank(normed, {"data=2"}, {1}, {.zero = zero});
  }
}

TEST(SplitEquivalence, SeveralPartsToAStageAndBackwardInTwo) {
  const Split interleaved{.chunksPerStage = 2}, folded{.chunksPerStage = 2, .isFolded = true, .splitsBackward = true},
      halved{.splitsBackward = true}, three{.chunksPerStage = 3};
  for (const Split &how : {interleaved, folded, halved}) {
    SCOPED_TRACE(std::to_string(how.chunksPerStage) + (how.isFolded ? " folded" : "") +
                 (how.splitsBackward ? " backward in two" : ""));
    // GPT's table is used by the first part and the last.
    expectEqualOnMeshes(gptCase(4), {"pipe=2", "data=2,pipe=2", "tensor=2,pipe=2"}, {2, 4}, how);
    ModelCase clipped = wideCase(4);
    clipped.training.optimizer = "adamw:lr=0.003,clip_norm=0.05";
    expectEqualOnMeshes(clipped, {"pipe=2", "pipe=3"}, {2, 4}, how);
    expectEqualToOneRank(resnetCase(2), {"pipe=2"}, {2}, how);
  }
  expectEqualOnMeshes(gptCase(4), {"pipe=2", "pipe=4"}, {4}, three);
  expectEqualOnMeshes(gptCase(4), {"data=2,pipe=2"}, {2}, {.zero = 3, .chunksPerStage = 2, .splitsBackward = true});
}

TEST(SplitEquivalence, ValuesComputedAgain) {
  // As little as saves anything, and whatever can be.
  for (int64_t bytes : {int64_t(2048), int64_t(1) << 40}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes less");
    expectEqualOnMeshes(gptCase(4), allMeshes(), {1, 2}, {.savedBytes = bytes});
    expectEqualOnMeshes(lenetCase(2), {"", "data=2", "pipe=2"}, {1, 2}, {.savedBytes = bytes});
    expectEqualToOneRank(resnetCase(2), {"data=2", "pipe=2"}, {1}, {.savedBytes = bytes});
    expectEqualOnMeshes(gptCase(4), {"data=2,pipe=2"}, {2},
                        {.zero = 3, .chunksPerStage = 2, .splitsBackward = true, .savedBytes = bytes});
  }
}

TEST(SplitEquivalence, ForwardPassOfEveryStageRunsAgain) {
  expectEqualOnMeshes(gptCase(4), allMeshes(), {1, 2}, {.isRecomputed = true});
  expectEqualOnMeshes(lenetCase(2), {"", "data=2", "pipe=2"}, {1, 2}, {.isRecomputed = true});
  expectEqualToOneRank(resnetCase(2), {"data=2", "pipe=2"}, {1}, {.isRecomputed = true});
  expectEqualOnMeshes(gptCase(4), {"data=2,pipe=2"}, {2},
                      {.zero = 3, .chunksPerStage = 2, .splitsBackward = true, .isRecomputed = true});
}

TEST(SplitEquivalence, ActivationsCrossStagesInParts) {
  const std::vector<std::string> meshes = {"tensor=2,pipe=2", "tensor=2,pipe=3", "data=2,tensor=2,pipe=2"};
  const Split sliced{.slicesSends = true};
  expectEqualOnMeshes(gptCase(4), meshes, {1, 2}, sliced);
  expectEqualOnMeshes(wideCase(4), meshes, {1, 2}, sliced);
  expectEqualOnMeshes(gptCase(4), {"tensor=2,pipe=2"}, {2},
                      {.chunksPerStage = 2, .isFolded = true, .splitsBackward = true, .slicesSends = true});
  expectEqualOnMeshes(
      gptCase(4), {"data=2,tensor=2,pipe=2"}, {2},
      {.zero = 3, .chunksPerStage = 2, .splitsBackward = true, .isRecomputed = true, .slicesSends = true});
}

TEST(SplitEquivalence, Inference) {
  // The last product is a sum over tensor that no bias follows: it must not wait for the end of the step.
  constexpr const char *text = R"(
    dg.graph @infer(%x: tensor<?x4xf32>) {
      %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5
      %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
      %h = dg.linear %x, %w1
      %r = dg.relu %h
      %p = dg.linear %r, %w2
      dg.return %p {names = ["p"]}
    })";
  constexpr int64_t numSamples = 10;
  auto context = dg::ir::test::makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> model = dg::ir::test::parse(*context, text);
  ASSERT_TRUE(model);
  std::mt19937_64 random(1);
  dg::ir::TensorMap inputs{{"x", dg::ir::test::randomTensor({numSamples, 4}, random)}};
  std::optional<dg::ir::HostTensor> whole;
  for (int64_t data : {1, 2, 4})
    for (int64_t tensor : {1, 2})
      for (int64_t pipe : {1, 2})
        for (int64_t microbatches : {1, 2}) {
          dg::passes::PipelineOptions options;
          options.mesh.sizes = {pipe, data, tensor};
          SCOPED_TRACE(
              fmt::format("data={},tensor={},pipe={} with {} micro-batches", data, tensor, pipe, microbatches));
          options.batch = (numSamples + data * microbatches - 1) / (data * microbatches) * data;
          options.microbatches = microbatches;
          options.isTraining = false;
          mlir::OwningOpRef<mlir::ModuleOp> chunks = model->clone();
          mlir::PassManager manager(context.get());
          dg::passes::buildPipeline(manager, options);
          ASSERT_TRUE(succeeded(manager.run(*chunks)));
          dg::ir::SimulatedRanks ranks(*chunks, {data, tensor}, dg::ir::ParameterStore(7));
          auto results = ranks.run("infer", inputs, microbatches);
          ASSERT_TRUE(succeeded(results));
          auto rows = results->rows("p", numSamples, microbatches, {data, tensor});
          ASSERT_TRUE(rows);
          if (!whole) // the first mesh is one rank with one micro-batch
            whole = rows;
          EXPECT_LT(dg::ir::test::difference(*whole, *rows), 1e-12);
        }
}

} // namespace
