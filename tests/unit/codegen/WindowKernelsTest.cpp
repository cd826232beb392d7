// SPDX-License-Identifier: Apache-2.0
// Proves that pools and convolutions over any windows and sums of statistics compute what their ops' reference
// evaluation does: one to three dimensions, padding that is not symmetric, dilation, windows that reach past the
// padding, odd sizes.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

namespace {

struct PoolCase {
  const char *input, *pooled, *inputSize, *attributes;
};
constexpr PoolCase pools[] = {
    {"2x3x112x112xf32", "2x3x56x56xf32", "112, 112",
     "kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>"},
    {"2x3x7x7xf32", "2x3x7x7xf32", "7, 7",
     "kernel = array<i64: 5, 3>, strides = array<i64: 1, 1>, padding = array<i64: 2, 1>"},
    {"1x2x41xf32", "1x2x40xf32", "41", "kernel = array<i64: 2>, strides = array<i64: 1>"},
    {"3x1x37xf32", "3x1x13xf32", "37",
     "kernel = array<i64: 3>, strides = array<i64: 3>, padding = array<i64: 0, 1>, ceil"},
    {"1x2x20x33xf32", "1x2x9x29xf32", "20, 33",
     "kernel = array<i64: 3, 3>, strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 0>, dilation = array<i64: "
     "2, 2>"},
    {"2x2x5x6x19xf32", "2x2x3x3x10xf32", "5, 6, 19",
     "kernel = array<i64: 2, 2, 2>, strides = array<i64: 2, 2, 2>, ceil"},
    {"1x1x1xf32", "1x1x1xf32", "1", "kernel = array<i64: 1>"},
};

} // namespace

TEST(WindowPoolKernels, MaxPool) {
  KernelCases cases;
  for (const PoolCase &pool : pools) {
    cases.add("dg.max_pool", {pool.input}, pool.attributes, {.tolerance = 0});
    cases.add("dg.max_pool_indices", {pool.input}, pool.attributes, {.tolerance = 0});
    cases.add("dg.max_pool_grad", {pool.pooled, pool.input}, pool.attributes, {.tolerance = 1e-6});
  }
  cases.check();
}

TEST(WindowPoolKernels, AvgPool) {
  KernelCases cases;
  for (const PoolCase &pool : pools)
    for (std::string count : {"", ", count_include_pad", ", sum"}) {
      cases.add("dg.avg_pool", {pool.input}, pool.attributes + count);
      cases.add("dg.avg_pool_grad", {pool.pooled},
                std::string(pool.attributes) + count + ", input_size = array<i64: " + pool.inputSize + ">");
    }
  cases.check();
}

TEST(WindowConvKernels, ForwardAndGradients) {
  struct ConvCase {
    const char *input, *weight, *output, *inputSize, *kernelSize, *attributes;
  };
  KernelCases cases;
  for (const ConvCase &conv : {
           ConvCase{"2x6x9x20xf32", "8x3x3x3xf32", "2x8x9x20xf32", "9, 20", "3, 3",
                    "padding = array<i64: 1, 1>, groups = 2 : i64"},
           ConvCase{"2x5x7x40xf32", "5x1x3x3xf32", "2x5x4x20xf32", "7, 40", "3, 3",
                    "strides = array<i64: 2, 2>, padding = array<i64: 1, 1>, groups = 5 : i64"},
           ConvCase{"1x3x11x37xf32", "4x3x3x5xf32", "1x4x8x29xf32", "11, 37", "3, 5",
                    "padding = array<i64: 1, 0, 0, 0>, dilation = array<i64: 2, 2>"},
           ConvCase{"2x2x4x5x18xf32", "3x2x2x3x3xf32", "2x3x3x2x18xf32", "4, 5, 18", "2, 3, 3",
                    "strides = array<i64: 1, 2, 1>, padding = array<i64: 0, 0, 1>"},
           ConvCase{"2x4x33xf32", "2x2x4xf32", "2x2x12xf32", "33", "4",
                    "strides = array<i64: 3>, padding = array<i64: 2, 3>, groups = 2 : i64"},
           ConvCase{"1x1x1xf32", "1x1x1xf32", "1x1x1xf32", "1", "1", "groups = 1 : i64"},
       }) {
    std::string attributes = conv.attributes;
    cases.add("dg.conv", {conv.input, conv.weight}, attributes);
    cases.add("dg.conv_input_grad", {conv.output, conv.weight},
              attributes + ", input_size = array<i64: " + conv.inputSize + ">");
    cases.add("dg.conv_weight_grad", {conv.output, conv.input},
              attributes + ", kernel_size = array<i64: " + conv.kernelSize + ">");
  }
  cases.check();
}

TEST(StatisticsKernels, Sums) {
  KernelCases cases;
  for (const char *places : {"x7x5", "x1x1", "x112x112", "x4x4"}) {
    std::string input = "5x13" + std::string(places) + "xf32";
    cases.add("dg.moments", {input, "5x1x1x1xf32", "13x1x1xf32"}, "dims = array<i64: 0, 2, 3>, scale = 0.25 : f64");
    cases.add("dg.normalize_sums", {input, input, "1x13x1x1xf32"});
    cases.add("dg.normalize", {input, "1x13x1x1xf32", "1x13x1x1xf32", "1x13x1x1xf32"});
  }
  cases.add("dg.moments", {"70x33xf32", "70x1xf32", "33xf32"}, "dims = array<i64: 0>");
  cases.add("dg.moments", {"3x4x17xf32", "f32", "3x4x1xf32"}, "dims = array<i64: 2>");
  cases.add("dg.moments", {"1x1xf32", "1x1xf32", "1xf32"}, "dims = array<i64: 0>");
  cases.add("dg.normalize_sums", {"9x31xf32", "9x31xf32", "9x1xf32"});
  cases.check();
}
