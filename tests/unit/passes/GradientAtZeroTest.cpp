// SPDX-License-Identifier: Apache-2.0
// Proves that a root of nothing, as after a relu that lets nothing through, and a power with the exponent 0 have the
// gradient 0 that PyTorch takes for them, and not what 0 times infinity gives.
#include "ir/reference/ReferenceExecutor.h"
#include "passes/Passes.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

/// The gradient of Σ op(w) for w = (0, 0, 3, 4).
static std::vector<double> gradientOf(const std::string &op, const std::string &before = "") {
  auto context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, "dg.graph @loss() {\n"
                                                 "  %w = dg.parameter \"w\" tensor<1x1x4xf32> uniform 0.5\n" +
                                                     before + "  %r = " + op +
                                                     "\n"
                                                     "  %loss = dg.reduce_sum %r {dims = array<i64: 0, 1, 2>}\n"
                                                     "  dg.return %loss\n}");
  PassManager manager(context.get());
  manager.addPass(dg::passes::createDeduceTypes());
  manager.addPass(dg::passes::createDecompose());
  manager.addPass(dg::passes::createDifferentiate());
  EXPECT_TRUE(succeeded(manager.run(*module)));
  ParameterStore store;
  store.set("w", {{1, 1, 4}, {0, 0, 3, 4}});
  auto results = ReferenceExecutor().run(*module->getOps<GraphOp>().begin(), {}, store);
  EXPECT_TRUE(succeeded(results));
  return results->at("grad w").data;
}

static void expectNear(const std::vector<double> &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-12) << "element " << i;
}

TEST(GradientAtZero, OfNorms) {
  // reduce_l2 over (0, 0) and (3, 4)
  expectNear(
      gradientOf("dg.reduce_l2 %p {dims = array<i64: 2>, keep}", "%p = dg.reshape %w {shape = array<i64: 1, 2, 2>}\n"),
      {0, 0, 0.6, 0.8});
}

TEST(GradientAtZero, OfPoolsByANorm) {
  expectNear(gradientOf("dg.lp_pool %w {kernel = array<i64: 2>, p = 2 : i64}"), {0, 0, 0.6, 0.8});
  double root = std::cbrt(91 * 91); // ∂ ∛(3³ + 4³)
  expectNear(gradientOf("dg.lp_pool %w {kernel = array<i64: 2>, p = 3 : i64}"), {0, 0, 9 / root, 16 / root});
}

TEST(GradientAtZero, OfPowersWithTheExponentZero) {
  expectNear(gradientOf("dg.pow %w, %e", "%e = dg.constant {value = 0.0, type = tensor<f32>}\n"), {0, 0, 0, 0});
  expectNear(gradientOf("dg.pow %w, %e", "%e = dg.literal {value = dense<[0.0, 2.0, 0.0, 2.0]> : tensor<4xf32>}\n"),
             {0, 0, 0, 8});
  expectNear(gradientOf("dg.pow %w, %e", "%e = dg.constant {value = 2.0, type = tensor<f32>}\n"), {0, 0, 6, 8});
}
