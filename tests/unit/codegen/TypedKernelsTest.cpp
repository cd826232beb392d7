// SPDX-License-Identifier: Apache-2.0
// Proves that kernels of every element type compute what their ops' reference evaluation does, and that empty tensors
// are legal.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(TypedKernels, ArithmeticOfEveryType) {
  KernelCases cases;
  for (std::string type : {"f64", "f16", "bf16", "f32"})
    for (const char *op : {"dg.add", "dg.sub", "dg.mul", "dg.div"}) {
      CaseOptions options{.tolerance = type == "f64" ? 1e-15 : 2e-7, .positive = true};
      cases.add(op, {"5x37x" + type, "37x" + type}, "", options);
      cases.add(op, {type, "3x" + type}, "", options);
    }
  // Numbers that a double holds exactly, so that the reference wraps as the kernel does.
  for (std::string type : {"i8", "i16", "i32", "ui8", "ui16", "ui32"})
    for (const char *op : {"dg.add", "dg.sub", "dg.mul", "dg.div"})
      if (type.find("32") == std::string::npos || std::string(op) != "dg.mul")
        cases.add(op, {"5x37x" + type, "5x37x" + type}, "", {.tolerance = 0, .wholeRange = true});
  for (std::string type : {"i32", "ui32", "i64", "ui64"})
    for (const char *op : {"dg.add", "dg.mul", "dg.div"})
      cases.add(op, {"5x37x" + type, "37x" + type}, "", {.tolerance = 0, .indexBound = 1 << 20});
  cases.check();
}

/// Kernels that are written with loads, stores and floating-point ops serve the other float types too.
TEST(TypedKernels, LayersOfEveryFloatType) {
  KernelCases cases;
  for (std::string type : {"f64", "f16", "bf16"}) {
    CaseOptions options{.tolerance = type == "f64" ? 1e-13 : 2e-6};
    auto t = [&](const char *shape) { return std::string(shape) + "x" + type; };
    cases.add("dg.matmul", {t("33x70"), t("70x41")}, "", options);
    cases.add("dg.matmul", {t("70x33"), t("41x70")}, "transpose_lhs, transpose_rhs", options);
    cases.add("dg.matmul", {t("2x130x600"), t("2x600x20")}, "", options);
    cases.add("dg.conv2d", {t("2x3x8x9"), t("4x3x3x3")}, "strides = array<i64: 2, 1>", options);
    cases.add("dg.max_pool2d", {t("2x3x8x9")}, "kernel = array<i64: 2, 2>", options);
    cases.add("dg.softmax", {t("7x19")}, "", options);
    cases.add("dg.layer_norm", {t("7x19"), t("19"), t("19")}, "", options);
    cases.add("dg.transpose", {t("13x19")}, "permutation = array<i64: 1, 0>", {.tolerance = 0});
    cases.add("dg.reduce_sum", {t("13x19")}, "dims = array<i64: 1>", options);
    cases.add("dg.expand", {t("13x1")}, "shape = array<i64: 3, 13, 5>", {.tolerance = 0});
    cases.add("dg.gelu", {t("130")}, "", options);
    cases.add("dg.embedding", {t("13x5"), "7xi32"}, "", {.tolerance = 0, .indexBound = 13});
    cases.add("dg.adam", {t("130"), t("130"), t("130"), t("130")}, "weight_decay = 0.01 : f64, decoupled",
              {.tolerance = options.tolerance, .positive = true});
  }
  cases.check();
}

TEST(TypedKernels, EmptyResultsNeedNoKernel) {
  KernelCases cases;
  for (auto *op : {cases.make("dg.add", {"0x5xf32", "5xf32"}, ""), cases.make("dg.matmul", {"0x5xf32", "5x3xf32"}, ""),
                   cases.make("dg.transpose", {"4x0xi64"}, "permutation = array<i64: 1, 0>")}) {
    ASSERT_NE(op, nullptr);
    auto spec = cases.kernels().addKernel(op);
    ASSERT_TRUE(mlir::succeeded(spec));
    EXPECT_EQ(spec->tiles, 0u);
  }
  EXPECT_EQ(cases.kernels().size(), 0u);
}
