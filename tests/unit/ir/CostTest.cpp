// SPDX-License-Identifier: Apache-2.0
// Proves that costs are those of the arithmetic: by hand for contractions, and never negative for any op.
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

static OpCost costOf(MLIRContext &context, const std::string &arguments, const std::string &op) {
  auto module = parse(context, "dg.graph @g(" + arguments + ") { %r = " + op + "\n dg.return %r }");
  GraphOp graph = *module->getOps<GraphOp>().begin();
  EXPECT_TRUE(succeeded(deduce(graph)));
  return cast<CostOp>(graph.getBody().front().front()).getCost();
}

TEST(Cost, CountsTheTapsOfContractions) {
  auto context = makeContext();
  OpCost matmul =
      costOf(*context, "%a: tensor<2x8x16xf32>, %b: tensor<2x4x16xf32>", "dg.matmul %a, %b {transpose_rhs}");
  EXPECT_EQ(matmul.flops, 2.0 * 2 * 8 * 4 * 16);
  EXPECT_EQ(matmul.bytes, 4.0 * 2 * (8 * 16 + 4 * 16 + 8 * 4));
  double taps = 64.0 * 10 * 24 * 24 * 25;
  EXPECT_EQ(costOf(*context, "%a: tensor<64x1x28x28xf32>, %b: tensor<10x1x5x5xf32>", "dg.conv2d %a, %b").flops,
            2 * taps);
  EXPECT_EQ(costOf(*context, "%a: tensor<64x10x24x24xf32>, %b: tensor<10x1x5x5xf32>",
                   "dg.conv2d_input_grad %a, %b {input_size = array<i64: 28, 28>}")
                .flops,
            2 * taps);
  EXPECT_EQ(costOf(*context, "%a: tensor<64x10x24x24xf32>, %b: tensor<64x1x28x28xf32>",
                   "dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 5, 5>}")
                .flops,
            2 * taps);
}

TEST(Cost, ReadsOnlyTheRowsOfAnEmbedding) {
  auto context = makeContext();
  OpCost cost = costOf(*context, "%a: tensor<8192x16xf32>, %b: tensor<4xi64>", "dg.embedding %a, %b");
  EXPECT_EQ(cost.bytes, 2.0 * 4 * 16 * 4);
}

TEST(Cost, IsNeverNegative) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : opTable()) {
    OpInstance instance = instantiate(spec, {1, 2, 3}, random, *context);
    if (auto op = dyn_cast<CostOp>(instance.op())) {
      EXPECT_GE(op.getCost().flops, 0) << instance.text;
      EXPECT_GE(op.getCost().bytes, 0) << instance.text;
    }
  }
}
