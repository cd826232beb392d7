// SPDX-License-Identifier: Apache-2.0
// Proves that a gradient graph can be differentiated again: the gradient of (gradient · v) is the product of the
// Hessian and v, against central differences of the gradient, in double.
#include "ir/ElementwiseOps.h"
#include "ir/GraphOps.h"
#include "ir/ShapeOps.h"
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

const std::vector<std::string> parameters = {"w1", "b1", "w2"};

void run(ModuleOp module, std::initializer_list<std::unique_ptr<Pass> (*)()> passes) {
  PassManager manager(module.getContext());
  for (auto make : passes)
    manager.addPass(make());
  ASSERT_TRUE(succeeded(manager.run(module)));
}

/// Makes the differentiated graph a loss again: Σ gradient · v, where v is a further input for each parameter.
void multiplyWithDirection(ModuleOp module) {
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

} // namespace

TEST(Hessian, ProductWithAVectorEqualsCentralDifferences) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  OwningOpRef<ModuleOp> first = parse(*context, model);
  ASSERT_TRUE(first);
  auto deduceTypes = []() { return dg::passes::createDeduceTypes(); };
  run(*first, {+deduceTypes, &dg::passes::createDecompose, &dg::passes::createDifferentiate});
  OwningOpRef<ModuleOp> second = first->clone();
  multiplyWithDirection(*second);
  run(*second, {&dg::passes::createDifferentiate});

  TensorMap inputs, values, directions;
  inputs["x"] = randomTensor({5, 3}, random);
  inputs["y"] = {{5}, {0, 3, 5, 1, 3}};
  values["w1"] = randomTensor({4, 3}, random), values["b1"] = randomTensor({4}, random);
  values["w2"] = randomTensor({6, 4}, random);
  for (const std::string &name : parameters)
    directions[name] = randomTensor(values[name].shape, random);
  auto gradientAt = [&](double step) {
    ParameterStore store;
    for (const std::string &name : parameters) {
      HostTensor moved = values[name];
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
    store.set(name, values[name]);
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
