// SPDX-License-Identifier: Apache-2.0
// Proves that an inference with blocked channels, fused convolutions and prepared weights gives what the model as it
// was written gives, in f64, on one rank and split, and that the passes did their work.
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/product/ConvolutionOps.h"
#include "passes/Pipeline.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/reference/SimulatedRanks.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace dg::ir;

namespace {

/// A few channels, pools, batch norm, a residual with and without its own convolution, a stride, a convolution whose
/// channels make no blocks, and a value that is read as an image by others.
constexpr const char *text = R"(
  dg.graph @infer(%x: tensor<?x3x19x17xf32>) {
    %w1 = dg.parameter "w1" tensor<32x3x5x3xf32> uniform 0.3
    %c1 = dg.conv2d %x, %w1 {strides = array<i64: 2, 1>, padding = array<i64: 2, 1>}
    %g1 = dg.parameter "g1" tensor<32xf32> uniform 0.5
    %b1 = dg.parameter "b1" tensor<32xf32> uniform 0.5
    %m1 = dg.parameter "m1" tensor<32xf32> uniform 0.5
    %v1 = dg.parameter "v1" tensor<32xf32> constant 0.8
    %n1 = dg.batch_norm %c1, %g1, %b1, %m1, %v1
    %r1 = dg.relu %n1
    %p1 = dg.max_pool %r1 {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
    %w2 = dg.parameter "w2" tensor<48x32x1x1xf32> uniform 0.3
    %a2 = dg.parameter "a2" tensor<48xf32> uniform 0.3
    %c2 = dg.conv2d %p1, %w2, %a2
    %r2 = dg.relu %c2
    %w3 = dg.parameter "w3" tensor<32x48x3x3xf32> uniform 0.1
    %c3 = dg.conv2d %r2, %w3 {padding = array<i64: 1, 1>}
    %s3 = dg.add %c3, %p1
    %r3 = dg.gelu %s3
    %w4 = dg.parameter "w4" tensor<32x32x3x3xf32> uniform 0.1
    %c4 = dg.conv2d %r3, %w4 {strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
    %w5 = dg.parameter "w5" tensor<32x32x1x1xf32> uniform 0.3
    %c5 = dg.conv2d %r3, %w5 {strides = array<i64: 2, 2>}
    %s5 = dg.add %c4, %c5
    %p5 = dg.avg_pool %s5 {kernel = array<i64: 2, 2>}
    %w6 = dg.parameter "w6" tensor<7x32x1x1xf32> uniform 0.3
    %c6 = dg.conv2d %s5, %w6
    %mean6 = dg.global_avg_pool %c6
    %flat6 = dg.reshape %mean6 {shape = array<i64: 0, -1>}
    %mean = dg.global_avg_pool %s5
    %flat = dg.reshape %mean {shape = array<i64: 0, -1>}
    %w7 = dg.parameter "w7" tensor<7x32xf32> uniform 0.3
    %l7 = dg.linear %flat, %w7
    %y = dg.add %l7, %flat6
    dg.return %y, %p5 {names = ["y", "p5"]}
  })";
constexpr int64_t numSamples = 6;

mlir::OwningOpRef<mlir::ModuleOp> split(mlir::ModuleOp model, dg::passes::PipelineOptions options) {
  options.isTraining = false;
  mlir::OwningOpRef<mlir::ModuleOp> chunks = model.clone();
  mlir::PassManager manager(model.getContext());
  dg::passes::buildPipeline(manager, options);
  return succeeded(manager.run(*chunks)) ? std::move(chunks) : nullptr;
}

TEST(BlockedInference, GivesWhatTheModelGives) {
  auto context = test::makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> model = test::parse(*context, text);
  ASSERT_TRUE(model);
  std::mt19937_64 random(3);
  TensorMap inputs{{"x", test::randomTensor({numSamples, 3, 19, 17}, random)}};

  mlir::OwningOpRef<mlir::ModuleOp> written = model->clone();
  dg::passes::PipelineOptions whole;
  whole.batch = numSamples;
  whole.isTraining = false;
  mlir::PassManager manager(context.get());
  dg::passes::buildWholePipeline(manager, whole);
  ASSERT_TRUE(succeeded(manager.run(*written)));
  ParameterStore parameters(7);
  auto expected = ReferenceExecutor().run(written->lookupSymbol<GraphOp>("infer"), inputs, parameters);
  ASSERT_TRUE(succeeded(expected));

  for (auto [data, tensor, pipe, microbatches] : std::initializer_list<std::tuple<int, int, int, int>>{
           {1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 2}, {2, 1, 2, 3}}) {
    dg::passes::PipelineOptions options;
    options.mesh.sizes = {pipe, data, tensor};
    SCOPED_TRACE(fmt::format("data={},tensor={},pipe={}", data, tensor, pipe));
    options.batch = numSamples / microbatches;
    options.microbatches = microbatches;
    mlir::OwningOpRef<mlir::ModuleOp> chunks = split(*model, options);
    ASSERT_TRUE(chunks);
    SimulatedRanks ranks(*chunks, {data, tensor}, ParameterStore(7));
    auto results = ranks.run("infer", inputs, microbatches);
    ASSERT_TRUE(succeeded(results));
    for (const char *name : {"y", "p5"}) {
      auto rows = results->rows(name, numSamples, microbatches, {data, tensor});
      ASSERT_TRUE(rows);
      EXPECT_LT(test::difference(expected->at(name), *rows), 1e-12) << name;
    }
  }
}

TEST(BlockedInference, LeavesConvolutionsAndNoCopies) {
  auto context = test::makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> model = test::parse(*context, text);
  ASSERT_TRUE(model);
  dg::passes::PipelineOptions options;
  options.batch = numSamples;
  mlir::OwningOpRef<mlir::ModuleOp> chunks = split(*model, options);
  ASSERT_TRUE(chunks);
  int64_t blocked = 0, plain = 0, elementwise = 0, transposed = 0, padded = 0;
  for (GraphOp graph : chunks->getOps<GraphOp>())
    if (graph.getProgram() == "infer")
      for (mlir::Operation &op : graph.getBody().front()) {
        blocked += mlir::isa<BlockedConvOp>(op);
        plain += mlir::isa<Conv2dOp>(op);
        elementwise += mlir::isa<ElementwiseOp, FusedOp>(op);
        transposed += mlir::isa<TransposeOp>(op);
        padded += mlir::isa<PadConstantOp>(op);
      }
  EXPECT_EQ(blocked, 5);
  EXPECT_EQ(plain, 1);       // seven outputs
  EXPECT_EQ(elementwise, 3); // gelu, which two convolutions read; the means of y; y
  EXPECT_EQ(transposed, 2);  // for the seven outputs, and p5
  EXPECT_EQ(padded, 2);      // x, and what gelu makes
}

} // namespace
