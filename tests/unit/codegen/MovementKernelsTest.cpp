// SPDX-License-Identifier: Apache-2.0
// Proves that kernels that copy elements put them where their ops' reference evaluation does, bit for bit, over odd
// sizes, steps, borders and element types.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

static constexpr CaseOptions exact = {.tolerance = 0, .indexBound = 100};

TEST(MovementKernels, Slice) {
  KernelCases cases;
  cases.add("dg.slice", {"7x33xf32"}, "starts = array<i64: 2, 5>, sizes = array<i64: 3, 17>", exact);
  cases.add("dg.slice", {"7x33xf32"},
            "starts = array<i64: 6, 32>, sizes = array<i64: -1, -1>, steps = array<i64: -2, -1>", exact);
  cases.add("dg.slice", {"3x5x40xf32"},
            "starts = array<i64: 0, 4, 1>, sizes = array<i64: 3, 2, 13>, steps = array<i64: 1, -3, 3>", exact);
  cases.add("dg.slice", {"200000xf32"}, "starts = array<i64: 7>, sizes = array<i64: -1>", exact);
  cases.add("dg.slice", {"200001xf32"}, "starts = array<i64: 1>, sizes = array<i64: -1>, steps = array<i64: 2>", exact);
  cases.add("dg.slice", {"4x1xf32"}, "starts = array<i64: 3, 0>, sizes = array<i64: 1, 1>", exact);
  cases.add("dg.slice", {"9x6x5xf32"}, "starts = array<i64: 0, 0, 0>, sizes = array<i64: -1, 3, -1>", exact);
  cases.check();
}

TEST(MovementKernels, Pad) {
  KernelCases cases;
  cases.add("dg.pad_constant", {"7x33xf32"}, "low = array<i64: 1, 2>, high = array<i64: 0, 3>", exact);
  cases.add("dg.pad_constant", {"7x33xf32", "f32"}, "low = array<i64: 1, 2>, high = array<i64: 3, 0>", exact);
  cases.add("dg.pad_constant", {"3x4x5x6xf32", "1xf32"}, "low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 2, 0, 0>",
            exact);
  cases.add("dg.pad_constant", {"3x4x5xf32"},
            "low = array<i64: 0, 1, 1>, high = array<i64: 2, 0, 2>, interior = array<i64: 1, 0, 2>", exact);
  cases.add("dg.pad_constant", {"5x19xf32", "f32"},
            "low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 3, 0>", exact);
  cases.add("dg.pad_constant", {"70000xf32"}, "low = array<i64: 11>, high = array<i64: 13>", exact);
  cases.add("dg.pad_constant", {"1x1xf32"}, "low = array<i64: 0, 0>, high = array<i64: 0, 1>", exact);
  cases.check();
}

TEST(MovementKernels, Concat) {
  KernelCases cases;
  cases.add("dg.concat", {"7x33xf32", "7x1xf32", "7x16xf32"}, "dim = 1 : i64", exact);
  cases.add("dg.concat", {"7x33xf32", "2x33xf32"}, "dim = 0 : i64", exact);
  cases.add("dg.concat", {"70000xf32", "3xf32", "40000xf32"}, "dim = 0 : i64", exact);
  cases.add("dg.concat", {"2x3x5xf32", "2x4x5xf32"}, "dim = 1 : i64", exact);
  cases.add("dg.concat", {"3x5xf32"}, "dim = 0 : i64", exact);
  cases.check();
}

TEST(MovementKernels, Patterns) {
  KernelCases cases;
  for (const char *attributes :
       {"", "upper", "diagonal = 2 : i64", "upper, diagonal = -3 : i64", "diagonal = -50 : i64"}) {
    cases.add("dg.trilu", {"3x17x33xf32"}, attributes, exact);
    cases.add("dg.trilu", {"9x4xf32"}, attributes, exact);
  }
  cases.add("dg.iota", {}, "dim = 1 : i64, type = tensor<3x7x5xf32>, start = 0.5 : f64, step = -0.3 : f64",
            {.tolerance = 1e-7});
  cases.add("dg.iota", {}, "dim = 0 : i64, type = tensor<40000xf32>", exact);
  cases.check();
}

TEST(MovementKernels, EveryElementType) {
  KernelCases cases;
  for (std::string type : {"f64", "f16", "bf16", "i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"}) {
    auto t = [&](const char *shape) { return std::string(shape) + "x" + type; };
    cases.add("dg.slice", {t("5x37")},
              "starts = array<i64: 4, 3>, sizes = array<i64: -1, 29>, steps = array<i64: -2, 1>", exact);
    cases.add("dg.pad_constant", {t("5x37"), type}, "low = array<i64: 1, 2>, high = array<i64: 0, 3>", exact);
    cases.add("dg.pad_constant", {t("5x7")},
              "low = array<i64: 0, 2>, high = array<i64: 0, 0>, interior = array<i64: 1, 1>", exact);
    cases.add("dg.concat", {t("5x37"), t("5x3")}, "dim = 1 : i64", exact);
    cases.add("dg.trilu", {t("5x37")}, "diagonal = 2 : i64", exact);
    cases.add("dg.iota", {}, "dim = 0 : i64, type = tensor<37x2x" + type + ">, step = 3.0 : f64", exact);
    cases.add("dg.gather", {t("5x37"), "9xi32"}, "", {.tolerance = 0, .indexBound = 5});
    cases.add("dg.gather_elements", {t("5x37"), "9x37xi64"}, "", {.tolerance = 0, .indexBound = 5});
    cases.add("dg.scatter_nd", {t("5x37"), "3x1xi64", t("3x37")}, "", {.tolerance = 0, .indexBound = 5});
    cases.add("dg.one_hot", {"9xi32"}, "depth = 7 : i64, dim = 1 : i64, type = " + type,
              {.tolerance = 0, .indexBound = 7});
  }
  cases.check();
}

/// A dimension of size 0 among the operands leaves the result to the others, or to the border.
TEST(MovementKernels, EmptyOperands) {
  KernelCases cases;
  cases.add("dg.concat", {"3x0xf32", "3x5xf32", "3x0xf32"}, "dim = 1 : i64", exact);
  cases.add("dg.concat", {"0xf32", "5xf32"}, "dim = 0 : i64", exact);
  cases.add("dg.pad_constant", {"0x3xf32", "f32"}, "low = array<i64: 1, 1>, high = array<i64: 1, 0>", exact);
  cases.add("dg.pad_constant", {"3x0xf32", "f32"}, "low = array<i64: 0, 1>, high = array<i64: 1, 3>", exact);
  cases.add("dg.scatter_elements", {"3x4xf32", "0x4xi64", "0x4xf32"}, "", exact);
  cases.add("dg.scatter_nd", {"3x4xf32", "0x1xi64", "0x4xf32"}, "", exact);
  cases.check();
}
