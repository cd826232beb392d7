// SPDX-License-Identifier: Apache-2.0
// Proves that every function of floats is as accurate as VectorMath.h says, on special numbers too, and that
// comparisons, bits and casts of every type give what their definitions do.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

namespace {
/// Adds one function in f32, f64, f16 and bf16; ulps are those of f32 and f64, which are 2^-23 and 2^-52 wide.
void addFunction(KernelCases &cases, const std::string &op, double ulps32, double ulps64, CaseOptions options = {}) {
  options.relative = true;
  options.tolerance = ulps32 * 0x1p-23;
  cases.add(op, {"3001xf32"}, "", options);
  cases.add(op, {"301xf16"}, "", options);
  cases.add(op, {"301xbf16"}, "", options);
  options.tolerance = ulps64 * 0x1p-52;
  cases.add(op, {"3001xf64"}, "", options);
}
} // namespace

TEST(VectorMath, FunctionsAreAccurate) {
  KernelCases cases;
  CaseOptions wide{.spread = 3, .specials = true}, positive{.positive = true, .specials = true};
  for (const char *op : {"dg.exp", "dg.erf"})
    addFunction(cases, op, 2, 4, wide);
  addFunction(cases, "dg.sigmoid", 3, 4, {.spread = 3});
  addFunction(cases, "dg.tanh", 2, 8, wide);
  addFunction(cases, "dg.log", 2, 4, positive);
  for (const char *op : {"dg.atan", "dg.cosh"})
    addFunction(cases, op, 1, 4, wide);
  for (const char *op : {"dg.sin", "dg.cos", "dg.tan"})
    addFunction(cases, op, 1, 16, {.spread = 30});
  for (const char *op : {"dg.expm1", "dg.sinh", "dg.asinh", "dg.softplus"})
    addFunction(cases, op, 1, 8, wide);
  for (const char *op : {"dg.asin", "dg.acos", "dg.atanh"})
    addFunction(cases, op, 1, 8, {.spread = 0.2});
  addFunction(cases, "dg.log1p", 1, 8, positive);
  addFunction(cases, "dg.acosh", 1, 8, {.spread = 3}); // NaN below 1
  for (const char *op : {"dg.sqrt", "dg.rsqrt", "dg.reciprocal"})
    addFunction(cases, op, 1, 1, positive);
  for (const char *op : {"dg.floor", "dg.ceil", "dg.round", "dg.trunc", "dg.abs", "dg.neg", "dg.sign"})
    addFunction(cases, op, 0, 0, wide);
  cases.check();
}

TEST(VectorMath, SmallArgumentsKeepTheirPlaces) {
  KernelCases cases;
  for (const char *op :
       {"dg.expm1", "dg.log1p", "dg.sinh", "dg.asinh", "dg.atanh", "dg.tanh", "dg.erf", "dg.sin", "dg.atan", "dg.asin"})
    addFunction(cases, op, 2, 8, {.spread = 1e-6});
  cases.check();
}

TEST(VectorMath, Powers) {
  KernelCases cases;
  CaseOptions options{.tolerance = 0x1p-23, .positive = true, .relative = true};
  cases.add("dg.pow", {"501xf32", "501xf32"}, "", options);
  cases.add("dg.pow", {"5x101xf64", "101xf64"}, "", options);
  CaseOptions any{.tolerance = 0x1p-22, .relative = true, .spread = 3, .specials = true};
  cases.add("dg.pow", {"501xf32", "501xf32"}, "", any);
  cases.add("dg.pow", {"501xf64", "501xf64"}, "", any);
  for (std::string type : {"i8", "i16", "i32", "ui8", "ui32", "i64"})
    cases.add("dg.pow", {"101x" + type, "101x" + type}, "", {.tolerance = 0, .indexBound = 10});
  cases.check();
}

TEST(LogicKernels, EveryTypeAndBroadcast) {
  KernelCases cases;
  CaseOptions exact{.tolerance = 0, .wholeRange = true, .specials = true};
  for (std::string type : {"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}) {
    for (std::string predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
      cases.add("dg.compare", {"5x17x" + type, "17x" + type}, "predicate = \"" + predicate + "\"", exact);
    for (const char *op : {"dg.min", "dg.max"})
      cases.add(op, {"5x17x" + type, "5x1x" + type}, "", exact);
    cases.add("dg.select", {"5x17xi1", "17x" + type, type}, "",
              {.tolerance = 0, .indexBound = type[0] == 'f' || type[0] == 'b' ? 2 : 100});
    cases.add("dg.clip", {"97x" + type}, "min = 1.0 : f64, max = 3.0 : f64", exact);
  }
  for (std::string type : {"i8", "i16", "i32", "ui8", "ui16", "ui32"}) {
    for (const char *op : {"dg.bit_and", "dg.bit_or", "dg.bit_xor"})
      cases.add(op, {"5x17x" + type, "5x17x" + type}, "", exact);
    cases.add("dg.bit_not", {"97x" + type}, "", exact);
    for (const char *attributes : {"", "right"})
      cases.add("dg.shift", {"97x" + type, "97x" + type}, attributes, {.tolerance = 0, .indexBound = 40});
    for (const char *attributes : {"", "fmod"})
      cases.add("dg.mod", {"97x" + type, "97x" + type}, attributes, exact);
  }
  for (std::string type : {"f32", "f64"})
    for (const char *attributes : {"", "fmod"})
      cases.add("dg.mod", {"97x" + type, "97x" + type}, attributes, {.tolerance = 1e-7, .spread = 5});
  for (const char *op : {"dg.logical_and", "dg.logical_or", "dg.logical_xor"})
    cases.add(op, {"5x17xi1", "17xi1"}, "", {.tolerance = 0, .indexBound = 2});
  cases.add("dg.logical_not", {"97xi1"}, "", {.tolerance = 0, .indexBound = 2});
  cases.add("dg.is_nan", {"97xf32"}, "", exact);
  for (const char *attributes : {"", "positive = false", "negative = false", "positive = false, negative = false"})
    cases.add("dg.is_inf", {"97xf16"}, attributes, exact);
  cases.check();
}

TEST(LogicKernels, CastsBetweenAllTypes) {
  KernelCases cases;
  const std::vector<std::string> types = {"f32", "f64", "f16", "bf16", "i1",   "i8",  "i16",
                                          "i32", "i64", "ui8", "ui16", "ui32", "ui64"};
  for (const std::string &from : types)
    for (const std::string &to : types) {
      // The ends of 64-bit integers are not doubles; the reference holds the number next to them.
      CaseOptions options{.tolerance = to.find("64") == std::string::npos ? 0 : 2e-16,
                          .wholeRange = true,
                          .relative = true,
                          .spread = 300,
                          .specials = true,
                          .stored = true};
      cases.add("dg.cast", {"97x" + from}, "to = " + to, options);
    }
  cases.check();
}

/// Ops of different element types are one kernel; a cast to f16 rounds although nothing is stored.
TEST(ElementwiseKernels, FusedRegionOfSeveralTypes) {
  KernelCases cases;
  cases.addText("dg.fused", R"(
    %a = builtin.unrealized_conversion_cast to tensor<33x20xf32>
    %b = builtin.unrealized_conversion_cast to tensor<20xi32>
      %r = dg.fused %a, %b : (tensor<33x20xf32>, tensor<20xi32>) -> (tensor<33x20xf32>) {
      ^bb0(%x: tensor<33x20xf32>, %y: tensor<20xi32>):
        %zero = dg.constant {value = 0.25, type = tensor<f32>} : () -> tensor<f32>
        %half = dg.cast %x {to = f16} : (tensor<33x20xf32>) -> tensor<33x20xf16>
        %back = dg.cast %half {to = f32} : (tensor<33x20xf16>) -> tensor<33x20xf32>
        %number = dg.cast %y {to = f32} : (tensor<20xi32>) -> tensor<20xf32>
        %sum = dg.add %back, %number : (tensor<33x20xf32>, tensor<20xf32>) -> tensor<33x20xf32>
        %c = dg.compare %sum, %zero {predicate = "gt"} : (tensor<33x20xf32>, tensor<f32>) -> tensor<33x20xi1>
        %s = dg.select %c, %sum, %zero : (tensor<33x20xi1>, tensor<33x20xf32>, tensor<f32>) -> tensor<33x20xf32>
        dg.return %s : (tensor<33x20xf32>) -> ()
      }
    )",
                {.tolerance = 1e-3, .indexBound = 3});
  cases.check();
}
