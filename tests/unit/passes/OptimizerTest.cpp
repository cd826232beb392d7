// SPDX-License-Identifier: Apache-2.0
// Proves that three steps of each optimizer give the parameters that PyTorch 2.15 gives in f64 (lion and lamb, which it
// does not have: their papers' formulas in its tensors), and that groups and patterns say what they should.
#include "ir/reference/ReferenceExecutor.h"
#include "passes/Passes.h"
#include "passes/train/NamePattern.h"
#include "passes/train/OptimizerSpec.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::passes;

namespace {

constexpr const char *text = R"(
  dg.graph @train(%loss: tensor<f32>, %g: tensor<4xf32>) typed {
    %w = dg.parameter "w" tensor<4xf32> constant 0.0 : tensor<4xf32>
    dg.return %loss, %g {names = ["loss", "grad w"]} : (tensor<f32>, tensor<4xf32>) -> ()
  })";

struct Steps {
  const char *optimizer;
  std::vector<double> parameters;
};

const Steps cases[] = {
    {"sgd:lr=0.1,weight_decay=0.05", {0.5172868125, -1.2442798437500002, 2.0233922499999997, -0.20478358984374997}},
    {"sgd:lr=0.1,momentum=0.9", {0.57225, -1.18825, 1.4919999999999998, -0.38625000000000004}},
    {"sgd:lr=0.1,momentum=0.9,nesterov=1,weight_decay=0.05",
     {0.5695538844375, -1.15939260453125, 1.52930174275, -0.5208931825820313}},
    {"adam:lr=0.1,weight_decay=0.05",
     {0.46118199281149713, -1.0968223597698874, 1.83113335827822, -0.054727106923364466}},
    {"adamw:lr=0.1,beta1=0.8,beta2=0.95,eps=0.001",
     {0.4678884793185362, -1.1320158391131845, 1.842063030431296, -0.1561099106129335}},
    {"adagrad:lr=0.1,lr_decay=0.5,weight_decay=0.05,initial_sum=0.25",
     {0.48832571052321505, -1.206307290422024, 1.927558478978822, -0.08947362664895021}},
    {"rmsprop:lr=0.1", {0.032111028686249765, -1.1934865160381956, 1.6337032133225433, -0.9066000424789852}},
    {"rmsprop:lr=0.1,alpha=0.9,momentum=0.5,weight_decay=0.05",
     {0.25690455043697363, -0.9766162441173202, 1.6102793141050415, 0.08779429243072205}},
    {"sgd:lr=0.1,clip_norm=1.5", {0.5346508130400476, -1.2520229165145484, 1.9672850260435932, -0.15277184910705457}},
    {"sgd:lr=0.1,clip_value=0.75", {0.49999999999999994, -1.2625, 1.95, -0.08125000000000002}},
    {"lion:lr=0.1,weight_decay=0.05", {0.39303493750000007, -1.33184109375, 1.8716472499999999, -0.030283589843750014}},
    {"lamb:lr=0.1,weight_decay=0.05", {0.4872949169833406, -1.080474434304403, 1.738741795570406, -0.3436826622298328}},
};

} // namespace

static void expectSteps(const std::string &optimizer, const Steps &one) {
  SCOPED_TRACE(optimizer);
  auto context = test::makeContext();
  OwningOpRef<ModuleOp> module = test::parse(*context, text);
  ASSERT_TRUE(module);
  PassManager manager(context.get());
  AddOptimizerOptions options;
  options.optimizer = optimizer;
  manager.addPass(createAddOptimizer(options));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  ParameterStore parameters;
  parameters.set("w", {{4}, {0.5, -1.25, 2.0, -0.03125}});
  const std::vector<double> gradients[] = {{0.25, -0.5, 3.0, 0.0}, {-1.0, 0.125, 0.5, 2.0}, {0.5, 0.5, -4.0, -0.25}};
  for (int64_t step = 1; step <= 3; ++step) {
    TensorMap inputs{{"loss", {{}, {0}}}, {"g", {{4}, gradients[step - 1]}}};
    ASSERT_TRUE(succeeded(ReferenceExecutor().run(module->lookupSymbol<GraphOp>("train"), inputs, parameters,
                                                  {.lr = parseOptimizer(optimizer)->lr, .step = step})));
  }
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(parameters.tensors().at("w").data[i], one.parameters[i], 1e-12) << "element " << i;
}

TEST(Optimizer, ThreeStepsAreThoseOfPyTorch) {
  for (const Steps &one : cases)
    expectSteps(one.optimizer, one);
}

TEST(Optimizer, ARateOfAGroupIsThatRate) {
  for (const Steps &one : cases) {
    // Twice the rate for all but w, which keeps its own.
    std::string text = one.optimizer;
    text.replace(text.find("lr=0.1"), 6, "lr=0.2");
    expectSteps(text + ";w:lr=0.1", one);
  }
}

TEST(Optimizer, TheNormIsOfAllGradientsBeforeClipping) {
  for (auto [optimizer, isTold] :
       {std::pair("sgd", false), {"sgd:grad_norm=1", true}, {"adam:clip_norm=0.5,clip_value=2", true}}) {
    SCOPED_TRACE(optimizer);
    auto context = test::makeContext();
    OwningOpRef<ModuleOp> module = test::parse(*context, text);
    ASSERT_TRUE(module);
    PassManager manager(context.get());
    AddOptimizerOptions options;
    options.optimizer = optimizer;
    manager.addPass(createAddOptimizer(options));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    TensorMap inputs{{"loss", {{}, {0}}}, {"g", {{4}, {2, -4, 5, -6}}}};
    ParameterStore parameters;
    auto results = ReferenceExecutor().run(module->lookupSymbol<GraphOp>("train"), inputs, parameters, {.lr = 0.1});
    ASSERT_TRUE(succeeded(results));
    ASSERT_EQ(results->count("grad_norm"), size_t(isTold));
    if (isTold)
      EXPECT_EQ(results->at("grad_norm").data[0], 9);
  }
}

TEST(Optimizer, GroupsSetTheirWeightDecay) {
  auto spec = parseOptimizer("adamw:lr=0.1;*.bias:weight_decay=0;head.*:weight_decay=0.5");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->weightDecayOf("fc.weight"), 0.01);
  EXPECT_EQ(spec->weightDecayOf("fc.bias"), 0);
  EXPECT_EQ(spec->weightDecayOf("head.bias"), 0.5) << "the last group that matches";
  EXPECT_EQ(spec->rateFactorOf("head.bias"), 1);
}

TEST(Optimizer, GroupsSetTheirRate) {
  auto spec = parseOptimizer("adamw:lr=0.001;head.*:lr=0.1;*.bias:weight_decay=0;cold.*:lr=0,weight_decay=0.5");
  ASSERT_TRUE(spec) << spec.status().message();
  EXPECT_EQ(spec->lr, 0.001);
  EXPECT_EQ(spec->rateFactorOf("body.weight"), 1);
  EXPECT_DOUBLE_EQ(spec->rateFactorOf("head.weight"), 100);
  EXPECT_DOUBLE_EQ(spec->rateFactorOf("head.bias"), 100) << "the last group that matches and has one";
  EXPECT_EQ(spec->weightDecayOf("head.bias"), 0);
  EXPECT_EQ(spec->weightDecayOf("head.weight"), 0.01);
  EXPECT_EQ(spec->rateFactorOf("cold.weight"), 0);
  auto frozen = parseOptimizer("sgd:lr=0;head.*:lr=0.1");
  ASSERT_FALSE(frozen);
  EXPECT_NE(frozen.status().message().find("expected lr= above 0"), std::string::npos) << frozen.status().message();
}

TEST(Optimizer, PatternsAreThoseOfAShell) {
  EXPECT_TRUE(matchesPattern("features.0.weight", "features.*"));
  EXPECT_TRUE(matchesPattern("features.0.weight", "*.weight"));
  EXPECT_TRUE(matchesPattern("layer1.0.bn1.bias", "layer?.*.bn*.bias"));
  EXPECT_TRUE(matchesPattern("a", "*"));
  EXPECT_TRUE(matchesPattern("", "*"));
  EXPECT_TRUE(matchesPattern("a*b", "a*b"));
  EXPECT_TRUE(matchesPattern("abab", "*ab"));
  EXPECT_FALSE(matchesPattern("features.0.weight", "features"));
  EXPECT_FALSE(matchesPattern("fc.weight", "features.*"));
  EXPECT_FALSE(matchesPattern("ab", "a?b"));
  EXPECT_FALSE(matchesPattern("a", ""));
}
