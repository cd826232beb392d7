// SPDX-License-Identifier: Apache-2.0
// Proves what batch norm leaves behind while it trains: running mean and variance move as PyTorch moves them, by the
// rows that are samples only, and inference uses them.
#include "ir/reference/ReferenceExecutor.h"
#include "passes/Passes.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;

namespace {

constexpr const char *text = R"(
  dg.graph @loss(%x: tensor<4x2x3xf32>, %y: tensor<4x2x3xf32>) {
    %w = dg.parameter "w" tensor<2xf32> constant 1.5
    %b = dg.parameter "b" tensor<2xf32> constant 0.25
    %m = dg.parameter "rm" tensor<2xf32> constant 0.5 {state}
    %v = dg.parameter "rv" tensor<2xf32> constant 2.0 {state}
    %n = dg.batch_norm %x, %w, %b, %m, %v {momentum = 0.2, epsilon = 0.001}
    %loss = dg.mse %n, %y
    dg.return %loss
  })";

} // namespace

TEST(TrainingForms, RunningStatisticsFollowTheSamples) {
  auto context = test::makeContext();
  OwningOpRef<ModuleOp> module = test::parse(*context, text);
  ASSERT_TRUE(module);
  PassManager manager(context.get());
  manager.addPass(dg::passes::createDeduceTypes());
  manager.addPass(dg::passes::createAddEvaluation());
  manager.addPass(dg::passes::createWeighSamples());
  manager.addPass(dg::passes::createTrainingForms());
  manager.addPass(dg::passes::createDecompose());
  ASSERT_TRUE(succeeded(manager.run(*module)));

  std::mt19937_64 random(3);
  TensorMap inputs{{"x", test::randomTensor({4, 2, 3}, random)}, {"y", test::randomTensor({4, 2, 3}, random)}};
  // The third row is padding: whatever it holds must not count.
  inputs["sample_weight"] = {{4}, {1.0 / 3, 1.0 / 3, 0, 1.0 / 3}};
  std::fill_n(inputs["x"].data.begin() + 12, 6, 1e6);
  ParameterStore parameters;
  auto results = ReferenceExecutor().run(module->lookupSymbol<GraphOp>("loss"), inputs, parameters);
  ASSERT_TRUE(succeeded(results));

  double loss = 0;
  for (int64_t channel = 0; channel < 2; ++channel) {
    std::vector<double> samples, targets;
    for (int64_t row : {0, 1, 3})
      for (int64_t place = 0; place < 3; ++place) {
        samples.push_back(inputs["x"].data[(row * 2 + channel) * 3 + place]);
        targets.push_back(inputs["y"].data[(row * 2 + channel) * 3 + place]);
      }
    double mean = 0, variance = 0, count = double(samples.size());
    for (double sample : samples)
      mean += sample / count;
    for (double sample : samples)
      variance += (sample - mean) * (sample - mean) / count;
    for (auto [sample, target] : llvm::zip_equal(samples, targets))
      loss += std::pow((sample - mean) / std::sqrt(variance + 0.001) * 1.5 + 0.25 - target, 2) / (2 * count);
    EXPECT_NEAR(parameters.tensors().at("rm").data[channel], 0.8 * 0.5 + 0.2 * mean, 1e-12);
    EXPECT_NEAR(parameters.tensors().at("rv").data[channel], 0.8 * 2.0 + 0.2 * variance * count / (count - 1), 1e-12);
  }
  EXPECT_NEAR(results->at("loss").data[0], loss, 1e-12);

  // Evaluation takes the running statistics and leaves them alone.
  TensorMap before = parameters.tensors();
  auto evaluated = ReferenceExecutor().run(module->lookupSymbol<GraphOp>("eval"), inputs, parameters);
  ASSERT_TRUE(succeeded(evaluated));
  double expected = 0;
  for (int64_t row : {0, 1, 3})
    for (int64_t i = 0; i < 6; ++i) {
      double mean = before["rm"].data[i / 3], variance = before["rv"].data[i / 3];
      double normal = (inputs["x"].data[row * 6 + i] - mean) / std::sqrt(variance + 0.001) * 1.5 + 0.25;
      expected += std::pow(normal - inputs["y"].data[row * 6 + i], 2) / 18;
    }
  EXPECT_NEAR(evaluated->at("loss").data[0], expected, 1e-12);
  EXPECT_EQ(parameters.tensors().at("rm").data, before["rm"].data);
}

TEST(TrainingForms, AMicrobatchWithoutSamplesLeavesNoTrace) {
  auto context = test::makeContext();
  OwningOpRef<ModuleOp> module = test::parse(*context, text);
  PassManager manager(context.get());
  manager.addPass(dg::passes::createDeduceTypes());
  manager.addPass(dg::passes::createWeighSamples());
  manager.addPass(dg::passes::createTrainingForms());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  TensorMap inputs{{"x", {{4, 2, 3}, std::vector<double>(24, 0)}},
                   {"y", {{4, 2, 3}, std::vector<double>(24, 0)}},
                   {"sample_weight", {{4}, std::vector<double>(4, 0)}}};
  ParameterStore parameters;
  auto results = ReferenceExecutor().run(module->lookupSymbol<GraphOp>("loss"), inputs, parameters);
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(results->at("loss").data[0], 0);
  // What it adds to the step's statistics is 0; the step itself adds the rest of the running ones.
  EXPECT_NEAR(parameters.tensors().at("rm").data[0], 0.8 * 0.5, 1e-12);
  EXPECT_NEAR(parameters.tensors().at("rv").data[0], 0.8 * 2.0, 1e-12);
}
