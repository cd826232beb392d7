// SPDX-License-Identifier: Apache-2.0
// Proves that reductions, arg-reductions, cumulative sums, sorts and integer products compute what their definitions
// do, for every element type, any dimensions, and tensors that are empty.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(ReduceKernels, EveryKindAndType) {
  KernelCases cases;
  for (std::string kind : {"sum", "max", "min", "prod"}) {
    std::string op = "dg.reduce_" + kind;
    for (const char *dims : {"dims = array<i64: 0>", "dims = array<i64: 1>, keep", "dims = array<i64: 0, 2>",
                             "dims = array<i64: 1, 2>", "dims = array<i64: 0, 1, 2>", "dims = array<i64>"}) {
      cases.add(op, {"5x7x19xf32"}, dims, {.positive = true});
      cases.add(op, {"3x4x70xf64"}, dims, {.tolerance = 1e-13, .positive = true});
      cases.add(op, {"5x7x19xf16"}, dims, {.tolerance = 1e-5, .spread = 0.5});
      cases.add(op, {"5x3x19xi32"}, dims, {.tolerance = 0, .indexBound = 3});
      cases.add(op, {"5x3x35xui8"}, dims, {.tolerance = 0, .indexBound = 2});
      cases.add(op, {"2x3x35xi64"}, dims, {.tolerance = 0, .indexBound = 2});
    }
    cases.add(op, {"0x4xf32"}, "dims = array<i64: 0>", {.tolerance = 0});
    cases.add(op, {"4x0x3xi16"}, "dims = array<i64: 1>, keep", {.tolerance = 0});
    cases.add(op, {"1xf32"}, "dims = array<i64: 0>");
  }
  for (const char *op : {"dg.reduce_max", "dg.reduce_min"}) {
    cases.add(op, {"5x70xi1"}, "dims = array<i64: 1>", {.tolerance = 0, .indexBound = 2});
    cases.add(op, {"9x70xf32"}, "dims = array<i64: 0>", {.tolerance = 0, .specials = true});
    cases.add(op, {"9x70xf32"}, "dims = array<i64: 1>", {.tolerance = 0, .specials = true});
    cases.add(op, {"300x130xi8"}, "dims = array<i64: 0>", {.tolerance = 0, .wholeRange = true});
  }
  cases.check();
}

TEST(OrderKernels, PlacesAndSums) {
  KernelCases cases;
  for (std::string type : {"f32", "f64", "f16", "i32", "ui8", "i64"}) {
    CaseOptions exact{.tolerance = 0, .indexBound = 5, .specials = true};
    for (const char *op : {"dg.arg_max", "dg.arg_min"})
      for (const char *attributes : {"", "axis = 0", "axis = 1, keep", "axis = 1, last"})
        cases.add(op, {"5x7x19x" + type}, attributes, exact);
    for (const char *attributes : {"", "axis = 0, exclusive", "axis = 1, reverse", "axis = 1, exclusive, reverse"})
      cases.add("dg.cumsum", {"5x7x19x" + type}, attributes,
                {.tolerance = type == "f64" ? 1e-14 : 1e-6, .indexBound = 3});
    cases.add("dg.hardmax", {"5x7x" + type}, "axis = 0", exact);
    cases.add("dg.hardmax", {"5x7x" + type}, "", exact);
  }
  cases.check();
}

TEST(OrderKernels, Sorts) {
  KernelCases cases;
  CaseOptions exact{.tolerance = 0, .indexBound = 9, .specials = true};
  for (std::string type : {"f32", "f64", "i32", "ui8"}) {
    cases.add("dg.top_k", {"7x19x" + type}, "k = 5", exact);
    cases.add("dg.top_k", {"7x19x" + type}, "k = 19, smallest", exact);
    cases.add("dg.top_k", {"7x19x3x" + type}, "k = 2, axis = 1", exact);
    cases.add("dg.top_k", {"1x" + type}, "k = 1", exact);
    cases.add("dg.top_k", {"3x1031x" + type}, "k = 1031, axis = 1", exact);
  }
  cases.add("dg.top_k_grad", {"7x5xf32", "7x5xi64"}, "size = 19", {.tolerance = 1e-6, .indexBound = 19});
  cases.add("dg.top_k_grad", {"5x3xf64", "5x3xi64"}, "size = 7, axis = 0", {.tolerance = 1e-14, .indexBound = 7});
  cases.check();
}

TEST(MatmulKernels, IntegersAndNothing) {
  KernelCases cases;
  for (std::string type : {"i8", "i32", "i64", "ui8", "ui32"}) {
    cases.add("dg.matmul", {"2x5x7x" + type, "2x7x19x" + type}, "", {.tolerance = 0, .indexBound = 5});
    cases.add("dg.matmul", {"7x5x" + type, "19x7x" + type}, "transpose_lhs, transpose_rhs",
              {.tolerance = 0, .indexBound = 5});
  }
  cases.add("dg.matmul", {"5x0xf32", "0x7xf32"}, "", {.tolerance = 0});
  cases.check();
}
