// SPDX-License-Identifier: Apache-2.0
// Proves that a graph is run as it reads: against the same step written out by hand, in both precisions, and with an
// error on the guilty op where something is missing.
#include "ir/reference/ReferenceExecutor.h"
#include "ir/ops/structure/GraphOps.h"
#include "runtime/support/CounterRandom.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// One step of y = w x with a squared error and momentum.
const char *const stepText = R"(
  dg.graph @train(%x: tensor<2x1xf32>, %y: tensor<2x1xf32>) {
    %w = dg.parameter "w" tensor<1x1xf32> uniform 0.5
    %v = dg.parameter "w.velocity" tensor<1x1xf32> constant 0.0 {state}
    %p = dg.linear %x, %w
    %loss = dg.mse %p, %y
    %d = dg.sub %p, %y
    %g = dg.matmul %d, %x {transpose_lhs}
    %w1, %v1 = dg.momentum %w, %g, %v {momentum = 0.9}
    dg.update %w1 {param = "w"}
    dg.update %v1 {param = "w.velocity"}
    dg.return %loss, %g
  })";

class ReferenceExecutorTest : public testing::Test {
protected:
  GraphOp load(const std::string &text) {
    module = parse(*context, text);
    EXPECT_TRUE(bool(module)) << message;
    GraphOp graph = *module->getOps<GraphOp>().begin();
    EXPECT_TRUE(succeeded(deduce(graph))) << message;
    return graph;
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler{context.get(), [this](Diagnostic &diagnostic) {
                                    message += diagnostic.str();
                                    return success();
                                  }};
  OwningOpRef<ModuleOp> module;
  TensorMap inputs{{"x", {{2, 1}, {1.5, -0.25}}}, {"y", {{2, 1}, {0.3, 0.7}}}};
};

} // namespace

TEST_F(ReferenceExecutorTest, TrainsAsWrittenByHand) {
  GraphOp graph = load(stepText);
  ParameterStore store(7);
  double w = (2.0f * dg::uniformAt(7, dg::streamOf("w"), 0) - 1.0f) * 0.5f, v = 0;
  for (int step = 1; step <= 3; ++step) {
    auto results = ReferenceExecutor().run(graph, inputs, store, {0.1, step});
    ASSERT_TRUE(succeeded(results)) << message;
    double loss = 0, grad = 0;
    for (int i = 0; i < 2; ++i) {
      double x = inputs["x"].data[i], error = w * x - inputs["y"].data[i];
      loss += error * error / 2;
      grad += error * x;
    }
    EXPECT_NEAR(results->at("loss").data[0], loss, 1e-15);
    EXPECT_NEAR(results->at("g").data[0], grad, 1e-15);
    v = 0.9 * v + grad;
    w -= 0.1 * v;
    EXPECT_NEAR(store.tensors().at("w").data[0], w, 1e-15);
    EXPECT_NEAR(store.tensors().at("w.velocity").data[0], v, 1e-15);
  }
}

TEST_F(ReferenceExecutorTest, RoundsEveryResultToFloatOnDemand) {
  GraphOp graph = load(stepText);
  ParameterStore store(7), exact(7);
  auto rounded = ReferenceExecutor(Precision::f32).run(graph, inputs, store, {0.1, 1});
  auto whole = ReferenceExecutor(Precision::f64).run(graph, inputs, exact, {0.1, 1});
  ASSERT_TRUE(succeeded(rounded) && succeeded(whole)) << message;
  for (const TensorMap &map : {*rounded, store.tensors()})
    for (const auto &[name, tensor] : map)
      for (double element : tensor.data)
        EXPECT_EQ(element, double(float(element))) << name;
  EXPECT_NE(rounded->at("loss").data[0], whole->at("loss").data[0]);
  EXPECT_NEAR(rounded->at("loss").data[0], whole->at("loss").data[0], 1e-6);
}

TEST_F(ReferenceExecutorTest, StartsParametersByTheirRecipes) {
  GraphOp graph = load(R"(dg.graph @g() {
    %a = dg.parameter "a" tensor<3x5xf32> uniform 0.3
    %b = dg.parameter "b" tensor<7xf32> normal 0.02
    %c = dg.parameter "c" tensor<2xf32> constant 0.1
    dg.return %a, %b, %c {names = ["a", "b", "c"]}
  })");
  ParameterStore store(42);
  auto results = ReferenceExecutor().run(graph, {}, store);
  ASSERT_TRUE(succeeded(results)) << message;
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(results->at("a").data[i], double((2.0f * dg::uniformAt(42, dg::streamOf("a"), i) - 1.0f) * 0.3f));
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(results->at("b").data[i], double(float(double(dg::normalAt(42, dg::streamOf("b"), i)) * 0.02)));
  EXPECT_EQ(results->at("c").data[1], double(0.1f));
}

TEST_F(ReferenceExecutorTest, RunsFusedOpsAsTheirParts) {
  module = parse(*context, R"(dg.graph @g(%a: tensor<2x3xf32>, %b: tensor<3xf32>) typed {
    %s = dg.add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %r = dg.relu %s : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %f = "dg.fused"(%a, %b) ({
    ^bb0(%p: tensor<2x3xf32>, %q: tensor<3xf32>):
      %t = dg.add %p, %q : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      %u = dg.relu %t : (tensor<2x3xf32>) -> tensor<2x3xf32>
      dg.return %u : (tensor<2x3xf32>) -> ()
    }) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    dg.return %r, %f {names = ["parts", "fused"]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  })");
  ASSERT_TRUE(bool(module)) << message;
  std::mt19937_64 random(suiteSeed());
  TensorMap given{{"a", randomTensor({2, 3}, random)}, {"b", randomTensor({3}, random)}};
  ParameterStore none;
  auto results = ReferenceExecutor().run(*module->getOps<GraphOp>().begin(), given, none);
  ASSERT_TRUE(succeeded(results)) << message;
  EXPECT_EQ(results->at("parts").data, results->at("fused").data);
}

TEST_F(ReferenceExecutorTest, NamesWhatIsMissing) {
  GraphOp graph = load(stepText);
  ParameterStore store;
  EXPECT_TRUE(failed(ReferenceExecutor().run(graph, {{"x", inputs["x"]}}, store)));
  EXPECT_NE(message.find("has an input 'y' for which no tensor was given"), std::string::npos) << message;

  message.clear();
  inputs["y"] = {{3, 1}, {1, 2, 3}};
  EXPECT_TRUE(failed(ReferenceExecutor().run(graph, inputs, store)));
  EXPECT_NE(message.find("found 3 elements"), std::string::npos) << message;

  message.clear();
  graph = load(R"(dg.graph @g() { %a = dg.parameter "a" tensor<3xf32> file
    dg.return %a })");
  EXPECT_TRUE(failed(ReferenceExecutor().run(graph, {}, store)));
  EXPECT_NE(message.find("'a' starts from a file"), std::string::npos) << message;

  message.clear();
  store.set("a", {{2}, {1, 2}});
  EXPECT_TRUE(failed(ReferenceExecutor().run(graph, {}, store)));
  EXPECT_NE(message.find("expected the declared"), std::string::npos) << message;

  message.clear();
  graph =
      load("dg.graph @g(%a: tensor<2xf32>) { dg.send %a {channel = 0 : i64, peer_stage = 1 : i64}\n dg.return %a }");
  EXPECT_TRUE(failed(ReferenceExecutor().run(graph, {{"a", {{2}, {1, 2}}}}, store)));
  EXPECT_NE(message.find("has no reference evaluation"), std::string::npos) << message;
}
