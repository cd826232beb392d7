// SPDX-License-Identifier: Apache-2.0
// Proves that the table of this folder misses no op: a new op that can be evaluated needs a row, and with it all
// suites.
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

#include <set>

using namespace dg::ir;
using namespace dg::ir::test;

TEST(OpTable, HasEveryOpWithAnEvaluation) {
  auto context = makeContext();
  std::set<std::string> rows;
  for (const OpSpec &spec : opTable())
    rows.insert(spec.text.substr(0, spec.text.find(' ')));
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations())
    // A fused op is a region of others; tests/unit/reference runs it.
    if (name.hasInterface<ReferenceOp>() && name.getStringRef() != "dg.fused" &&
        name.getStringRef() != "dg.blocked_conv")
      EXPECT_TRUE(rows.count(name.getStringRef().str())) << name.getStringRef().str() << " has no row in OpTable.cpp";
}

TEST(OpTable, EveryOpBringsItsPartsOrIsMadeOfThem) {
  auto context = makeContext();
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations()) {
    if (!name.hasInterface<ReferenceOp>() || name.getStringRef() == "dg.fused" ||
        name.getStringRef() == "dg.blocked_conv")
      continue;
    bool isMadeOfParts = name.hasInterface<CompositeOp>() || name.hasInterface<LossOp>();
    EXPECT_TRUE(name.hasInterface<ShardingRuleOp>() || isMadeOfParts) << name.getStringRef().str();
    EXPECT_TRUE(name.hasInterface<CostOp>() || isMadeOfParts) << name.getStringRef().str();
  }
}
