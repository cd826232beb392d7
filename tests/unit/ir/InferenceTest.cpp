// SPDX-License-Identifier: Apache-2.0
// Proves what inference accepts with dimensions that are not bound, and that what it rejects is said with what was
// found and what was expected.
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// The type of the op's first result, or the error.
std::string infer(const std::string &arguments, const std::string &op) {
  auto context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  auto module = parse(*context, "dg.graph @g(" + arguments + ") { %r = " + op + "\n dg.return %r }");
  if (!module)
    return message;
  GraphOp graph = *module->getOps<GraphOp>().begin();
  if (failed(deduce(graph)))
    return message;
  llvm::raw_string_ostream(message) << graph.getBody().front().front().getResult(0).getType();
  return message;
}

struct Case {
  std::string arguments, op, expected;
};

} // namespace

TEST(Inference, KeepsDimensionsThatAreNotBound) {
  const Case cases[] = {
      {"%a: tensor<?x10xf32>, %b: tensor<20x10xf32>", "dg.linear %a, %b", "tensor<?x20xf32>"},
      {"%a: tensor<?x10xf32>, %b: tensor<10xf32>", "dg.add %a, %b", "tensor<?x10xf32>"},
      {"%a: tensor<?x10xf32>, %b: tensor<?x10xf32>", "dg.mse %a, %b", "tensor<f32>"},
      {"%a: tensor<?x20x4x4xf32>", "dg.reshape %a {shape = array<i64: 0, -1>}", "tensor<?x320xf32>"},
      {"%a: tensor<?x4x6xf32>", "dg.reshape %a {shape = array<i64: -1, 6>}", "tensor<?x6xf32>"},
      {"%a: tensor<?x1x28x28xf32>, %b: tensor<10x1x5x5xf32>", "dg.conv2d %a, %b", "tensor<?x10x24x24xf32>"},
      {"%a: tensor<?x10x24x24xf32>", "dg.max_pool2d %a {kernel = array<i64: 2, 2>}", "tensor<?x10x12x12xf32>"},
      {"%a: tensor<?x10xf32>, %b: tensor<?xi32>", "dg.cross_entropy %a, %b", "tensor<f32>"},
      {"%a: tensor<50x8xf32>, %b: tensor<?x6xi32>", "dg.embedding %a, %b", "tensor<?x6x8xf32>"},
      {"%a: tensor<?x6x8xf32>", "dg.attention %a, %a, %a {heads = 2 : i64, causal}", "tensor<?x6x8xf32>"},
  };
  for (const Case &c : cases)
    EXPECT_EQ(infer(c.arguments, c.op), c.expected) << c.op;
}

TEST(Inference, SaysWhatWasFoundAndExpected) {
  const Case cases[] = {
      {"%a: tensor<64x10xf32>, %b: tensor<20x5xf32>", "dg.matmul %a, %b",
       "'dg.matmul' op contracts 10 of lhs 'tensor<64x10xf32>' with 20 of rhs 'tensor<20x5xf32>', expected equal "
       "sizes"},
      {"%a: tensor<2x4x5xf32>, %b: tensor<3x5x6xf32>", "dg.matmul %a, %b",
       "expected equal sizes, or 1, in front of the last two"},
      {"%a: tensor<f32>, %b: tensor<4x4xf32>", "dg.matmul %a, %b", "expected two tensors of rank 1 or more"},
      {"%a: tensor<64x10xf32>, %b: tensor<20xf32>", "dg.add %a, %b", "expected equal sizes, or 1"},
      {"%a: tensor<4xf32>, %b: tensor<4xi32>", "dg.mul %a, %b", "expected equal element types"},
      {"%a: tensor<64x10xf32>, %b: tensor<20x11xf32>", "dg.linear %a, %b", "contracts 10 of input"},
      {"%a: tensor<64x10xf32>, %b: tensor<20x10xf32>, %c: tensor<10xf32>", "dg.linear %a, %b, %c",
       "expected one of 20 elements"},
      {"%a: tensor<2x6x8xf32>", "dg.attention %a, %a, %a {heads = 3 : i64}", "cuts a width of 8 into 3 heads"},
      {"%a: tensor<2x6x8xf32>, %b: tensor<2x5x8xf32>", "dg.attention %a, %b, %b {heads = 2 : i64, causal}",
       "is causal with 6 tokens of query and 5 of key"},
      {"%a: tensor<2x6x8xf32>, %b: tensor<3x6x8xf32>", "dg.attention %a, %b, %b {heads = 2 : i64}",
       "expected [batch, tokens, width]"},
      {"%a: tensor<4x3x8x8xf32>, %b: tensor<10x1x5x5xf32>", "dg.conv2d %a, %b",
       "expected [n, c, h, w] and [o, c, kh, kw]"},
      {"%a: tensor<4x1x4x4xf32>, %b: tensor<10x1x5x5xf32>", "dg.conv2d %a, %b", "expected a kernel that fits"},
      {"%a: tensor<4x1x8x8xf32>, %b: tensor<10x1x5x5xf32>, %c: tensor<1xf32>", "dg.conv2d %a, %b, %c",
       "expected one of 10"},
      {"%a: tensor<4x1x8x8xf32>, %b: tensor<10x1x5x5xf32>", "dg.conv2d %a, %b {strides = array<i64: 0, 1>}",
       "expected two strides above 0"},
      {"%a: tensor<4x2x8x8xf32>, %b: tensor<2x1x5x5xf32>",
       "dg.conv2d_input_grad %a, %b {input_size = array<i64: 8, 8>}", "expected 4 at dimension 2"},
      {"%a: tensor<4x2x8x8xf32>, %b: tensor<4x1x8x8xf32>", "dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 3>}",
       "expected [kh, kw]"},
      {"%a: tensor<4x6xf32>", "dg.reshape %a {shape = array<i64: 5, -1>}", "divide the 24 elements"},
      {"%a: tensor<4x6xf32>", "dg.reshape %a {shape = array<i64: 5, 5>}",
       "one of 24 elements, as the input has, found 25"},
      {"%a: tensor<4x6xf32>", "dg.reshape %a {shape = array<i64: -1, -1>}", "at most one -1"},
      {"%a: tensor<4x6xf32>", "dg.reshape %a {shape = array<i64: 4, 6, 0>}", "0 only where the input has a dimension"},
      {"%a: tensor<4x6xf32>", "dg.transpose %a {permutation = array<i64: 0, 0>}", "expected each of 0 to 1 once"},
      {"%a: tensor<4xf32>", "dg.expand %a {shape = array<i64: 5, 3>}",
       "expected sizes that are equal, or 1 in the input"},
      {"%a: tensor<5x3xf32>", "dg.expand %a {shape = array<i64: 3>}",
       "expected sizes that are equal, or 1 in the input"},
      {"%a: tensor<4x6xf32>", "dg.reduce_sum %a {dims = array<i64: 2>}", "expected different numbers from 0 to 1"},
      {"%a: tensor<4x6xf32>", "dg.softmax %a {causal}", "is causal over"},
      {"%a: tensor<4x6xf32>, %b: tensor<4x5xf32>", "dg.softmax_grad %a, %b", "expected equal types"},
      {"%a: tensor<4x6xf32>, %b: tensor<5xf32>", "dg.layer_norm %a, %b, %b", "has weight 'tensor<5xf32>' for input"},
      {"%a: tensor<4x6x6xf32>", "dg.max_pool2d %a {kernel = array<i64: 2, 2>}", "in [n, c, h, w]"},
      {"%a: tensor<1x1x3x3xf32>", "dg.max_pool2d %a {kernel = array<i64: 4, 4>}", "expected a kernel that fits"},
      {"%a: tensor<1x1x3x3xf32>, %b: tensor<1x1x4x4xf32>", "dg.max_pool2d_grad %a, %b {kernel = array<i64: 2, 2>}",
       "expected the type of the pooled input"},
      {"%a: tensor<8x4xf32>, %b: tensor<3xf32>", "dg.embedding %a, %b", "expected integers"},
      {"%a: tensor<8xf32>, %b: tensor<3xi32>", "dg.embedding %a, %b", "expected [rows, width]"},
      {"%a: tensor<8x4xf32>, %b: tensor<3xi32>", "dg.pick %a, %b", "expected one index for each row"},
      {"%a: tensor<8xf32>, %b: tensor<3xi32>", "dg.pick_grad %a, %b {classes = 4 : i64}", "expected equal shapes"},
      {"%a: tensor<8x1xf32>, %b: tensor<8xf32>", "dg.mse %a, %b", "expected equal types [samples, …]"},
      {"%a: tensor<8x10xf32>, %b: tensor<8xf32>", "dg.nll %a, %b", "integers of shape [samples, …]"},
      {"%a: tensor<8x10xf32>, %b: tensor<7xi32>", "dg.cross_entropy %a, %b", "integers of shape [samples, …]"},
      {"%a: tensor<8x10xf32>, %b: tensor<8x9xf32>", "dg.sgd %a, %b", "gradient and state of the parameter's type"},
  };
  for (const Case &c : cases)
    EXPECT_NE(infer(c.arguments, c.op).find(c.expected), std::string::npos)
        << c.op << "\n  says " << infer(c.arguments, c.op) << "\n  expected " << c.expected;
}

TEST(Inference, WaitsForOperandsThatAreNotDeduced) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : opTable()) {
    if (spec.operands.empty())
      continue;
    OpInstance instance = instantiate(spec, {2, 4}, random, *context);
    instance.graph().getBody().getArgument(0).setType(AnyType::get(context.get()));
    Operation *op = instance.op();
    SmallVector<Type> types;
    EXPECT_TRUE(succeeded(cast<InferTypeOpInterface>(op).inferReturnTypes(
        context.get(), op->getLoc(), op->getOperands(), op->getAttrDictionary(), op->getPropertiesStorage(),
        op->getRegions(), types)));
    EXPECT_EQ(types.size(), op->getNumResults()) << instance.text;
    EXPECT_TRUE(llvm::all_of(types, isAny)) << instance.text;
  }
}

TEST(Evaluation, NamesAnIndexOutOfRange) {
  auto context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  const OpSpec specs[] = {{"dg.embedding %a, %b", {{"5 d"}, {"n", Elements::index, "5"}}},
                          {"dg.embedding_grad %a, %b {rows = 5 : i64}", {{"n d"}, {"n", Elements::index, "5"}}},
                          {"dg.pick %a, %b", {{"n 5"}, {"n", Elements::index, "5"}}},
                          {"dg.pick_grad %a, %b {classes = 5 : i64}", {{"n"}, {"n", Elements::index, "5"}}}};
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : specs) {
    message.clear();
    OpInstance instance = instantiate(spec, {2, 3}, random, *context);
    instance.operands[1].data[1] = 5;
    EXPECT_TRUE(failed(evaluateOp(instance.op(), instance.operands, {}, Precision::f64)));
    EXPECT_NE(message.find("found index 5"), std::string::npos) << message;
    EXPECT_NE(message.find("expected 0 to 4"), std::string::npos) << message;
  }
}
