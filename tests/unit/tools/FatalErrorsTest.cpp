// SPDX-License-Identifier: Apache-2.0
// Proves that an op which cannot be built ends dgc as a bad model does, and that no other fatal error does.
#include "tools/dgc/FatalErrors.h"

#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;

/// As an op would whose inference lets an f64 bias of an f32 input pass.
static void buildMisfit() {
  dg::tools::endWithBadInputWhereNoOpCanBeBuilt();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<DGDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  Block block;
  builder.setInsertionPointToEnd(&block);
  Value input = block.addArgument(RankedTensorType::get({2}, builder.getF32Type()), loc);
  Value bias = block.addArgument(RankedTensorType::get({2}, builder.getF64Type()), loc);
  builder.create<AddOp>(loc, input, bias, PlaceAttr());
}

TEST(FatalErrorsDeathTest, AnOpThatCannotBeBuiltIsABadModel) {
  EXPECT_EXIT(buildMisfit(), testing::ExitedWithCode(65), "expected equal element types(.|\n)*is made of others");
}

TEST(FatalErrorsDeathTest, AnotherFaultAborts) {
  auto fail = [] {
    dg::tools::endWithBadInputWhereNoOpCanBeBuilt();
    llvm::report_fatal_error("out of registers");
  };
  EXPECT_DEATH(fail(), "LLVM ERROR: out of registers");
}
