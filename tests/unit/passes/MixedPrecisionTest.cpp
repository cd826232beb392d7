// SPDX-License-Identifier: Apache-2.0
// Proves that a model in mixed precision is the model: without rounding it trains as in f32 on every mesh; with
// rounding many ranks agree with one within the type's digits; and an overflow on one rank skips the step on all.
#include "ir/build/Families.h"
#include "passes/Pipeline.h"
#include "passes/partition/Mesh.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitCases.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::passes::test;

namespace {

TEST(MixedPrecision, ExactlyTheModelWhereNothingIsRounded) {
  for (const char *precision : {"bf16", "f16"})
    for (bool reducesWide : {false, true}) {
      SCOPED_TRACE(std::string(precision) + (reducesWide ? ", gradients summed in f32" : ""));
      Split how{.precision = precision, .reducesWide = reducesWide};
      expectEqualOnMeshes(wideCase(10), allMeshes(), {1, 2}, how);
      expectEqualOnMeshes(gptCase(4), allMeshes(), {1, 2}, how);
      expectEqualOnMeshes(lenetCase(2), {"data=2", "tensor=2", "pipe=2"}, {1}, how);
    }
}

TEST(MixedPrecision, ExactlyTheModelWithZeroNormsAndBatchNorm) {
  for (int64_t zero : {1, 2, 3}) {
    SCOPED_TRACE("zero " + std::to_string(zero));
    expectEqualOnMeshes(gptCase(3), {"data=2", "data=2,pipe=2"}, {1, 2}, {.zero = zero, .precision = "bf16"});
  }
  ModelCase clipped = wideCase(4);
  clipped.training.optimizer = "adamw:lr=0.003,clip_norm=0.05,clip_value=0.02";
  expectEqualOnMeshes(clipped, {"data=2", "pipe=2"}, {1, 2}, {.precision = "bf16"});
  expectEqualToOneRank(resnetCase(2), {"data=2", "pipe=2"}, {1}, {.precision = "bf16"});
}

/// Largest difference of two runs of some steps, relative to the largest element of each tensor.
void expectSimilar(const ModelCase &model, Split how, double tolerance) {
  std::unique_ptr<mlir::MLIRContext> context = ir::test::makeContext();
  auto module = ir::buildFamily(model.spec, *context);
  ASSERT_TRUE(succeeded(module));
  how.rounds = true;
  for (int64_t microbatches : {1, 2}) {
    how.mesh = "";
    how.microbatches = microbatches;
    Attempt one = splitAndTrain(**module, model.training, how);
    ASSERT_TRUE(one.outcome) << one.error;
    for (const std::string &mesh : allMeshes()) {
      if (*llvm::max_element(model.training.sampleCounts) < microbatches * passes::parseMesh(mesh)->sizeOf("data"))
        continue;
      SCOPED_TRACE(model.spec + " in " + how.precision + " on '" + mesh + "' with " + std::to_string(microbatches));
      how.mesh = mesh;
      Attempt many = splitAndTrain(**module, model.training, how);
      ASSERT_TRUE(many.outcome) << many.error;
      EXPECT_EQ(firstDifference(*one.outcome, *many.outcome, tolerance), "");
    }
  }
}

TEST(MixedPrecision, ManyRanksAgreeWithinTheTypesDigits) {
  // bf16 has 8 digits, f16 11; a few values are off by one unit after some sums in another order.
  for (auto [precision, tolerance] : {std::pair{"bf16", 0.02}, {"f16", 0.0025}}) {
    Split how{.precision = precision};
    ModelCase wide = wideCase(4), gpt = gptCase(2);
    // Adam divides by the root of the square: a gradient near 0 may change its sign with its last digit.
    wide.training.optimizer = gpt.training.optimizer = "sgd:lr=0.05";
    expectSimilar(wide, how, tolerance);
    expectSimilar(gpt, how, tolerance);
  }
}

/// A perceptron whose first sample is so large in step 2 that its rank, and only it, overflows f16.
struct OverflowRun {
  std::unique_ptr<mlir::MLIRContext> context = ir::test::makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> model, chunks;
  std::optional<ir::SimulatedRanks> ranks;
  int64_t step = 1, microbatches = 1;

  OverflowRun(const std::string &mesh, int64_t microbatches, int64_t zero, const char *optimizer)
      : microbatches(microbatches) {
    auto built = ir::buildFamily("mlp:8-16-16-4", *context);
    model = std::move(*built);
    chunks = model->clone();
    passes::PipelineOptions options;
    auto parsed = passes::parseMesh(mesh);
    options.mesh = *parsed;
    options.optimizer = optimizer;
    options.batch = 8 / microbatches;
    options.microbatches = microbatches;
    options.zero = zero;
    options.precision = "f16";
    options.lossScale = 1024;
    options.growthInterval = 2;
    mlir::PassManager manager(context.get());
    passes::buildPipeline(manager, options);
    EXPECT_TRUE(succeeded(manager.run(*chunks)));
    ranks.emplace(*chunks, ir::SimulatedMesh{parsed->sizeOf("data"), parsed->sizeOf("tensor")}, ir::ParameterStore(7),
                  ir::Precision::f32);
  }

  /// `sample` chooses the data; the first sample is multiplied by `first`.
  ir::TensorMap run(double first, uint64_t sample) {
    std::mt19937_64 random(sample + 6);
    ir::TensorMap inputs{{"x", ir::test::randomTensor({8, 8}, random)}, {"y", {{8}, std::vector<double>(8, 1)}}};
    if (auto graph = model->lookupSymbol<ir::GraphOp>("loss"); graph)
      for (auto [index, type] : llvm::enumerate(graph.getInputTypes().getAsValueRange<mlir::TypeAttr>()))
        if (auto tensor = mlir::cast<mlir::RankedTensorType>(type); graph.getInputName(index) == "y")
          inputs["y"] = tensor.getRank() == 1 ? ir::HostTensor{{8}, std::vector<double>(8, 1)}
                                              : ir::test::randomTensor({8, tensor.getDimSize(1)}, random);
    for (int64_t i = 0; i < 8; ++i)
      inputs["x"].data[size_t(i)] *= first;
    EXPECT_TRUE(succeeded(ranks->run("train", inputs, microbatches, {0.05, step++})));
    auto parameters = ranks->gatherParameters();
    EXPECT_TRUE(succeeded(parameters));
    return *parameters;
  }
};

TEST(LossScale, AnOverflowOnOneRankSkipsTheStepOnAll) {
  for (const char *optimizer : {"adamw:lr=0.05", "sgd:lr=0.05,momentum=0.9", "lamb:lr=0.05"})
    for (auto [mesh, microbatches, zero] : {std::tuple{"", 1, 0},
                                            {"data=2", 1, 0},
                                            {"data=2", 2, 0},
                                            {"pipe=2", 2, 0},
                                            {"data=2,tensor=2,pipe=2", 2, 0},
                                            {"data=4", 1, 1},
                                            {"data=2", 1, 2}}) {
      SCOPED_TRACE(std::string(optimizer) + " on '" + mesh + "'");
      OverflowRun run(mesh, microbatches, zero, optimizer);
      ir::TensorMap good = run.run(1, 0), skipped = run.run(1e5, 1), after = run.run(1, 2), grown = run.run(1, 3);
      EXPECT_EQ(good.at("loss_scale").data[0], 1024);
      EXPECT_EQ(skipped.at("loss_scale").data[0], 512);
      EXPECT_EQ(after.at("loss_scale").data[0], 512);
      EXPECT_EQ(grown.at("loss_scale").data[0], 1024);
      EXPECT_EQ(grown.at("loss_scale.steps").data[0], 0);
      for (const auto &[name, tensor] : good) {
        if (name.starts_with("loss_scale"))
          continue;
        EXPECT_EQ(tensor.data, skipped.at(name).data) << name;
        EXPECT_NE(tensor.data, after.at(name).data) << name;
        for (double element : after.at(name).data)
          EXPECT_TRUE(std::isfinite(element)) << name;
      }
    }
}

/// As under PyTorch's GradScaler, which does not call the optimizer's step then.
TEST(LossScale, ASkippedStepDoesNotCount) {
  for (const char *optimizer : {"adamw:lr=0.05", "lamb:lr=0.05", "adagrad:lr=0.05,lr_decay=0.5"})
    for (const char *mesh : {"", "data=2,pipe=2"}) {
      SCOPED_TRACE(std::string(optimizer) + " on '" + mesh + "'");
      OverflowRun whole(mesh, 2, 0, optimizer), overflowing(mesh, 2, 0, optimizer);
      whole.run(1, 0);
      overflowing.run(1, 0);
      overflowing.run(1e5, 1);
      overflowing.run(1e5, 1);
      ir::TensorMap expected = whole.run(1, 2), found = overflowing.run(1, 2);
      EXPECT_EQ(found.at("loss_scale.skipped").data[0], 2);
      EXPECT_EQ(expected.at("loss_scale.skipped").data[0], 0);
      for (const auto &[name, tensor] : expected)
        if (!llvm::StringRef(name).starts_with("loss_scale"))
          for (size_t i = 0; i < tensor.data.size(); ++i) // the scale differs, and with it what is subnormal in f16
            EXPECT_NEAR(tensor.data[i], found.at(name).data[i], 2e-4) << name;
    }
}

} // namespace
