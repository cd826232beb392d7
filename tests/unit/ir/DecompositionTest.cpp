// SPDX-License-Identifier: Apache-2.0
// Proves that a composite op and the parts it decomposes into compute the same.
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

TEST(Decomposition, EqualsTheCompositesOwnEvaluation) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  int numDecomposed = 0;
  for (int round = 0; round < 5; ++round)
    for (const OpSpec &spec : opTable()) {
      OpInstance instance = instantiate(spec, {1, 2, 3, 5}, random, *context);
      auto composite = dyn_cast<CompositeOp>(instance.op());
      if (!composite)
        continue;
      SCOPED_TRACE(instance.text);
      ParameterStore none;
      auto whole = ReferenceExecutor().run(instance.graph(), instance.inputs(), none);
      ASSERT_TRUE(succeeded(whole));

      OpBuilder builder(composite);
      SmallVector<Value> parts = composite.decompose(builder);
      if (parts.empty())
        continue;
      ++numDecomposed;
      ASSERT_EQ(parts.size(), composite->getNumResults());
      EXPECT_EQ(parts[0].getType(), composite->getResult(0).getType());
      composite->replaceAllUsesWith(parts);
      composite->erase();
      auto split = ReferenceExecutor().run(instance.graph(), instance.inputs(), none);
      ASSERT_TRUE(succeeded(split));
      EXPECT_LT(difference(whole->at("r0"), split->at("r0")), 1e-13);
    }
  EXPECT_GE(numDecomposed, 5 * 5) << "linear, attention and conv2d with a bias have parts";
}
