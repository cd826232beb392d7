// SPDX-License-Identifier: Apache-2.0
// Proves that matrix products are right for shapes around every blocking limit, in all four forms, batched or not, on
// each target the host can run.
#include "tests/unit/codegen/KernelCases.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

static std::string dims(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + "f32";
}

static void addAllForms(KernelCases &cases, int64_t m, int64_t n, int64_t k) {
  cases.add("dg.matmul", {dims({m, k}), dims({k, n})});
  cases.add("dg.matmul", {dims({m, k}), dims({n, k})}, "transpose_rhs");
  cases.add("dg.matmul", {dims({k, m}), dims({k, n})}, "transpose_lhs");
  cases.add("dg.matmul", {dims({k, m}), dims({n, k})}, "transpose_lhs, transpose_rhs");
}

TEST(MatmulKernels, SmallShapes) {
  KernelCases cases;
  for (auto [m, n, k] : std::initializer_list<std::tuple<int, int, int>>{{1, 1, 1},
                                                                         {64, 20, 10},
                                                                         {64, 1, 20},
                                                                         {1, 20, 64},
                                                                         {2, 3, 5},
                                                                         {7, 17, 3},
                                                                         {13, 33, 31},
                                                                         {64, 50, 320},
                                                                         {64, 10, 50},
                                                                         {15, 64, 16}})
    addAllForms(cases, m, n, k);
  cases.check();
}

TEST(MatmulKernels, BlockedShapes) {
  KernelCases cases;
  for (auto [m, n, k] : std::initializer_list<std::tuple<int, int, int>>{
           {97, 203, 131}, {257, 129, 513}, {64, 784, 1024}, {29, 40, 1031}})
    addAllForms(cases, m, n, k);
  cases.check();
}

TEST(MatmulKernels, Batches) {
  KernelCases cases;
  cases.add("dg.matmul", {"24x64x32xf32", "24x64x32xf32"}, "transpose_rhs");
  cases.add("dg.matmul", {"2x3x17x9xf32", "2x3x9x33xf32"});
  cases.add("dg.matmul", {"5x33x7xf32", "5x33x19xf32"}, "transpose_lhs");
  cases.add("dg.matmul", {"3x300x300xf32", "3x300x64xf32"});
  cases.check();
}

TEST(MatmulKernels, NamedTargets) {
  std::string error;
  auto native = Target::parse("native", error);
  ASSERT_TRUE(mlir::succeeded(native));
  auto host = native->requiredFeatures();
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    auto target = Target::parse(name, error);
    ASSERT_TRUE(mlir::succeeded(target));
    bool runs = llvm::all_of(target->requiredFeatures(),
                             [&](const std::string &feature) { return llvm::is_contained(host, feature); });
    if (!runs)
      continue;
    KernelCases cases(name);
    addAllForms(cases, 61, 45, 130);
    cases.add("dg.transpose", {"37x21xf32"}, "permutation = array<i64: 1, 0>");
    cases.add("dg.gelu", {"1000xf32"});
    cases.check();
  }
  EXPECT_TRUE(mlir::failed(Target::parse("i386", error)));
  EXPECT_NE(error.find("expected native"), std::string::npos);
}

TEST(PanelProduct, RowsAndColumnsAroundEveryLimit) {
  for (const char *target : {"native", "x86-64-v3"}) {
    KernelCases cases(target);
    for (int64_t rows : {1, 2, 3, 4, 7, 8, 15, 16, 17, 33})
      for (auto [depth, columns] :
           std::initializer_list<std::pair<int64_t, int64_t>>{{1, 1}, {5, 32}, {40, 33}, {7, 250}})
        for (const char *element : {"f32", "f64"}) {
          std::string type = std::string("x") + element;
          cases.add("dg.panel_product",
                    {std::to_string(rows) + "x" + std::to_string(depth) + type,
                     std::to_string((columns + 31) / 32) + "x" + std::to_string(depth) + "x32" + type},
                    "columns = " + std::to_string(columns) + " : i64");
        }
    cases.check();
  }
}
