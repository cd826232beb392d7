// SPDX-License-Identifier: Apache-2.0
// Proves that a gradient graph can be differentiated again: the gradient of (gradient · v) is the product of the
// Hessian and v, against central differences of the gradient, in double.
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ReferenceExecutor.h"
#include "passes/Passes.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// Layers, activations, both softmaxes, reductions and a choice of classes: what a loss is made of.
constexpr const char *model = R"(
  dg.graph @loss(%x: tensor<5x3xf32>, %y: tensor<5xi64>) {
    %w1 = dg.parameter "w1" tensor<4x3xf32> uniform 0.9
    %b1 = dg.parameter "b1" tensor<4xf32> uniform 0.5
    %w2 = dg.parameter "w2" tensor<6x4xf32> uniform 0.9
    %h = dg.linear %x, %w1, %b1
    %g = dg.gelu %h
    %z = dg.linear %g, %w2
    %l = dg.log_softmax %z
    %picked = dg.pick %l, %y
    %nll = dg.reduce_mean %picked {dims = array<i64: 0>}
    %p = dg.softmax %z
    %t = dg.tanh %p
    %s = dg.sigmoid %z
    %r = dg.relu %z
    %ts = dg.mul %t, %s
    %rs = dg.mul %r, %ts
    %m = dg.mish %rs
    %e = dg.reduce_log_sum_exp %m {dims = array<i64: 1>}
    %n = dg.reduce_l2 %z {dims = array<i64: 0, 1>}
    %total = dg.reduce_sum %e {dims = array<i64: 0>}
    %a = dg.sub %total, %nll
    %loss = dg.mul %a, %n
    dg.return %loss
  })";

/// What images go through: convolutions (with and without groups), pools, layer norm and statistics over samples.
constexpr const char *imageModel = R"(
  dg.graph @loss(%x: tensor<2x3x6x6xf32>, %v: tensor<2x1x1x1xf32>) {
    %w1 = dg.parameter "w1" tensor<4x3x3x3xf32> uniform 0.5
    %w2 = dg.parameter "w2" tensor<4x2x3x3xf32> uniform 0.5
    %g = dg.parameter "g" tensor<3xf32> uniform 0.5
    %b = dg.parameter "b" tensor<3xf32> uniform 0.5
    %c1 = dg.conv2d %x, %w1 {padding = array<i64: 1, 1>}
    %s1 = dg.sigmoid %c1
    %p1 = dg.max_pool2d %s1 {kernel = array<i64: 2, 2>}
    %c2 = dg.conv %p1, %w2 {padding = array<i64: 1, 1>, groups = 2 : i64}
    %zero = dg.constant {value = 0.0, type = tensor<1x4x1x1xf32>}
    %m, %q = dg.moments %c2, %v, %zero {dims = array<i64: 0, 2, 3>, scale = 0.1}
    %n = dg.normalize %c2, %m, %q, %m
    %t = dg.tanh %n
    %p2 = dg.max_pool %t {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1>}
    %p3 = dg.avg_pool %p2 {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>}
    %l = dg.layer_norm %p3, %g, %b {epsilon = 0.1}
    %sq = dg.mul %l, %l
    %loss = dg.reduce_sum %sq {dims = array<i64: 0, 1, 2, 3>}
    dg.return %loss
  })";

void run(ModuleOp module, std::initializer_list<std::unique_ptr<Pass> (*)()> passes) {
  PassManager manager(module.getContext());
  for (auto make : passes)
    manager.addPass(make());
  ASSERT_TRUE(succeeded(manager.run(module)));
}

/// Makes the differentiated graph a loss again: Σ gradient · v, where v is a further input for each parameter.
void multiplyWithDirection(ModuleOp module, ArrayRef<std::string> parameters) {
  GraphOp graph = *module.getOps<GraphOp>().begin();
  graph.setSymName("loss");
  ReturnOp end = graph.getReturn();
  OpBuilder builder(end);
  Value sum;
  for (auto [index, name] : llvm::enumerate(parameters)) {
    Value gradient = end.getOperand(unsigned(index) + 1);
    ASSERT_EQ(end.getResultName(unsigned(index) + 1), "grad " + name);
    Value direction = graph.addInput("v " + name, gradient.getType());
    Value product = builder.create<MulOp>(end.getLoc(), gradient, direction, PlaceAttr());
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(product).getRank()));
    Value dot = builder.create<ReduceSumOp>(end.getLoc(), product, all, false, PlaceAttr());
    sum = sum ? Value(builder.create<AddOp>(end.getLoc(), sum, dot, PlaceAttr())) : dot;
  }
  builder.create<ReturnOp>(end.getLoc(), sum, builder.getStrArrayAttr({"loss"}), PlaceAttr());
  end.erase();
}

/// Gradients of `text` at `values` along random directions, twice: by the second gradient graph and by differences.
void checkProduct(const char *text, const TensorMap &inputs, const TensorMap &values, std::mt19937_64 &random) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> first = parse(*context, text);
  ASSERT_TRUE(first);
  std::vector<std::string> parameters;
  for (auto parameter : (*first->getOps<GraphOp>().begin()).getOps<ParameterOp>())
    parameters.push_back(parameter.getParam().str());
  auto deduceTypes = []() { return dg::passes::createDeduceTypes(); };
  run(*first, {+deduceTypes, &dg::passes::createDecompose, &dg::passes::createDifferentiate});
  OwningOpRef<ModuleOp> second = first->clone();
  multiplyWithDirection(*second, parameters);
  run(*second, {&dg::passes::createDifferentiate});

  TensorMap directions;
  for (const std::string &name : parameters)
    directions[name] = randomTensor(values.at(name).shape, random);
  auto gradientAt = [&](double step) {
    ParameterStore store;
    for (const std::string &name : parameters) {
      HostTensor moved = values.at(name);
      for (size_t i = 0; i < moved.data.size(); ++i)
        moved.data[i] += step * directions[name].data[i];
      store.set(name, moved);
    }
    auto results = ReferenceExecutor().run(*first->getOps<GraphOp>().begin(), inputs, store);
    EXPECT_TRUE(succeeded(results));
    return *results;
  };
  const double step = 1e-5;
  TensorMap above = gradientAt(step), below = gradientAt(-step), withDirections = inputs;
  ParameterStore store;
  for (const std::string &name : parameters) {
    store.set(name, values.at(name));
    withDirections["v " + name] = directions[name];
  }
  auto product = ReferenceExecutor().run(*second->getOps<GraphOp>().begin(), withDirections, store);
  ASSERT_TRUE(succeeded(product));
  for (const std::string &name : parameters) {
    HostTensor expected = above.at("grad " + name);
    for (size_t i = 0; i < expected.data.size(); ++i)
      expected.data[i] = (expected.data[i] - below.at("grad " + name).data[i]) / (2 * step);
    EXPECT_LT(difference(product->at("grad " + name), expected), 1e-6) << name;
  }
}

} // namespace

TEST(Hessian, ProductWithAVectorEqualsCentralDifferences) {
  std::mt19937_64 random(suiteSeed());
  TensorMap inputs, values;
  inputs["x"] = randomTensor({5, 3}, random);
  inputs["y"] = {{5}, {0, 3, 5, 1, 3}};
  values["w1"] = randomTensor({4, 3}, random), values["b1"] = randomTensor({4}, random);
  values["w2"] = randomTensor({6, 4}, random);
  checkProduct(model, inputs, values, random);
}

TEST(Hessian, ProductThroughConvolutionsPoolsAndNorms) {
  std::mt19937_64 random(suiteSeed());
  TensorMap inputs, values;
  inputs["x"] = randomTensor({2, 3, 6, 6}, random);
  inputs["v"] = {{2, 1, 1, 1}, {0.75, 0.25}};
  values["w1"] = randomTensor({4, 3, 3, 3}, random), values["w2"] = randomTensor({4, 2, 3, 3}, random);
  values["g"] = randomTensor({3}, random), values["b"] = randomTensor({3}, random);
  checkProduct(imageModel, inputs, values, random);
}
