// SPDX-License-Identifier: Apache-2.0
// Proves that convolution, pooling, normalization and indexing kernels compute what their ops' reference evaluation
// does, over strides, padding, odd sizes and index types.
#include "tests/unit/codegen/KernelCases.h"

#include "runtime/abi/KernelAbi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace dg::codegen;

TEST(ConvolutionKernels, Forward) {
  KernelCases cases;
  cases.add("dg.conv2d", {"64x1x28x28xf32", "10x1x5x5xf32"});
  cases.add("dg.conv2d", {"5x10x12x12xf32", "20x10x5x5xf32"});
  cases.add("dg.conv2d", {"2x3x9x11xf32", "7x3x3x2xf32"}, "padding = array<i64: 1, 2>");
  cases.add("dg.conv2d", {"2x3x17x13xf32", "4x3x3x3xf32"}, "strides = array<i64: 2, 2>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d", {"1x2x16x23xf32", "3x2x2x3xf32"}, "strides = array<i64: 1, 3>");
  cases.add("dg.conv2d", {"2x1x5x5xf32", "1x1x5x5xf32"});
  cases.add("dg.conv2d", {"1x64x20x20xf32", "16x64x3x3xf32"}, "padding = array<i64: 1, 1>");
  cases.add("dg.conv2d", {"1x1024x7x7xf32", "40x1024x1x1xf32"});
  cases.check();
}

TEST(ConvolutionKernels, InputGradient) {
  KernelCases cases;
  cases.add("dg.conv2d_input_grad", {"5x20x8x8xf32", "20x10x5x5xf32"}, "input_size = array<i64: 12, 12>");
  cases.add("dg.conv2d_input_grad", {"2x7x9x14xf32", "7x3x3x2xf32"},
            "input_size = array<i64: 9, 11>, padding = array<i64: 1, 2>");
  cases.add("dg.conv2d_input_grad", {"2x4x9x7xf32", "4x3x3x3xf32"},
            "input_size = array<i64: 17, 13>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d_input_grad", {"2x4x8x6xf32", "4x3x3x3xf32"},
            "input_size = array<i64: 18, 14>, strides = array<i64: 2, 2>");
  cases.add("dg.conv2d_input_grad", {"2x1x1x1xf32", "1x1x5x5xf32"}, "input_size = array<i64: 5, 5>");
  cases.add("dg.conv2d_input_grad", {"1x16x40x40xf32", "16x24x3x3xf32"},
            "input_size = array<i64: 40, 40>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d_input_grad", {"2x200x7x7xf32", "200x128x1x1xf32"}, "input_size = array<i64: 7, 7>");
  cases.check();
}

TEST(ConvolutionKernels, WeightGradient) {
  KernelCases cases;
  cases.add("dg.conv2d_weight_grad", {"64x10x24x24xf32", "64x1x28x28xf32"}, "kernel_size = array<i64: 5, 5>");
  cases.add("dg.conv2d_weight_grad", {"5x20x8x8xf32", "5x10x12x12xf32"}, "kernel_size = array<i64: 5, 5>");
  cases.add("dg.conv2d_weight_grad", {"2x7x9x14xf32", "2x3x9x11xf32"},
            "kernel_size = array<i64: 3, 2>, padding = array<i64: 1, 2>");
  cases.add("dg.conv2d_weight_grad", {"2x4x9x7xf32", "2x3x17x13xf32"},
            "kernel_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d_weight_grad", {"2x1x1x1xf32", "2x1x5x5xf32"}, "kernel_size = array<i64: 5, 5>");
  cases.check();
}

// Weights of many elements are made of blocks of products.
TEST(ConvolutionKernels, WeightGradientByProducts) {
  KernelCases cases;
  cases.add("dg.conv2d_weight_grad", {"2x96x14x14xf32", "2x100x14x14xf32"}, "kernel_size = array<i64: 1, 1>");
  cases.add("dg.conv2d_weight_grad", {"3x64x7x7xf32", "3x33x7x7xf32"},
            "kernel_size = array<i64: 3, 3>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d_weight_grad", {"1x128x13x11xf32", "1x67x25x22xf32"},
            "kernel_size = array<i64: 1, 1>, strides = array<i64: 2, 2>");
  cases.add("dg.conv2d_weight_grad", {"2x61x28x28xf32", "2x24x56x56xf32"},
            "kernel_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>");
  cases.add("dg.conv2d_weight_grad", {"1x64x56x40xf32", "1x3x112x80xf32"},
            "kernel_size = array<i64: 7, 7>, strides = array<i64: 2, 2>, padding = array<i64: 3, 3>");
  cases.check();
}

TEST(PoolingKernels, MaxPool) {
  KernelCases cases;
  for (auto [input, grad, attributes] : std::initializer_list<std::tuple<const char *, const char *, const char *>>{
           {"3x10x24x24xf32", "3x10x12x12xf32", "kernel = array<i64: 2, 2>"},
           {"2x20x8x8xf32", "2x20x4x4xf32", "kernel = array<i64: 2, 2>"},
           {"2x3x9x11xf32", "2x3x4x5xf32", "kernel = array<i64: 2, 2>"},
           {"2x3x9x11xf32", "2x3x4x5xf32", "kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>"},
           {"2x3x9x40xf32", "2x3x8x38xf32", "kernel = array<i64: 2, 3>, strides = array<i64: 1, 1>"},
           {"1x1x12x12xf32", "1x1x4x4xf32", "kernel = array<i64: 3, 3>"},
           {"1x2x6x2xf32", "1x2x2x1xf32", "kernel = array<i64: 3, 2>"}}) {
    cases.add("dg.max_pool2d", {input}, attributes, {.tolerance = 0});
    cases.add("dg.max_pool2d_grad", {grad, input}, attributes, {.tolerance = 1e-6});
  }
  cases.check();
}

TEST(NormalizationKernels, Softmax) {
  KernelCases cases;
  for (const char *shape : {"64x10xf32", "7x1xf32", "33x257xf32", "3x8192xf32", "2x3x5x31xf32"}) {
    cases.add("dg.softmax", {shape}, "", {.spread = 4});
    cases.add("dg.softmax", {shape}, "scale = 0.125 : f64", {.tolerance = 1e-6, .relative = true});
    cases.add("dg.softmax_grad", {shape, shape}, "scale = 0.5 : f64");
    cases.add("dg.log_softmax", {shape}, "", {.spread = 4});
    cases.add("dg.log_softmax_grad", {shape, shape});
  }
  for (const char *shape : {"2x3x31x31xf32", "64x64xf32", "5x256x256xf32", "3x3xf32", "2x40x40xf32"})
    cases.add("dg.softmax", {shape}, "scale = 0.125 : f64, causal", {.spread = 4});
  cases.check();
}

TEST(NormalizationKernels, LayerNorm) {
  KernelCases cases;
  for (auto [rows, columns] :
       std::initializer_list<std::pair<int, int>>{{1024, 384}, {64, 10}, {3, 1}, {17, 259}, {1100, 1000}}) {
    std::string input = std::to_string(rows) + "x" + std::to_string(columns) + "xf32",
                row = std::to_string(columns) + "xf32";
    cases.add("dg.layer_norm", {input, row, row});
    cases.add("dg.layer_norm_grad", {input, input, row}, "epsilon = 1.0e-3 : f64", {.tolerance = 5e-6});
  }
  cases.check();
}

TEST(IndexingKernels, TablesAndClasses) {
  KernelCases cases;
  for (std::string integer : {"i64", "i32"}) {
    cases.add("dg.embedding", {"100x384xf32", "4x25x" + integer}, "", {.tolerance = 0, .indexBound = 100});
    cases.add("dg.embedding_grad", {"4x25x384xf32", "4x25x" + integer}, "rows = 37 : i64", {.indexBound = 37});
    cases.add("dg.pick", {"64x10xf32", "64x" + integer}, "", {.tolerance = 0, .indexBound = 10});
    cases.add("dg.pick_log_softmax", {"64x10xf32", "64x" + integer}, "", {.indexBound = 10, .spread = 4});
    cases.add("dg.pick_grad", {"64xf32", "64x" + integer}, "classes = 10 : i64", {.tolerance = 0, .indexBound = 10});
    cases.add("dg.correct", {"200x3xf32", "200x" + integer}, "", {.tolerance = 0, .indexBound = 3});
  }
  cases.add("dg.embedding_grad", {"70x9xf32", "70xi64"}, "rows = 8192 : i64", {.indexBound = 8192});
  for (std::string shape : {"2x3x31xf32", "2x3x8192xf32", "2x3x1xf32"}) {
    bool isOne = shape == "2x3x1xf32";
    cases.add("dg.pick_log_softmax", {shape, "2x3xi64"}, "", {.indexBound = isOne ? 1 : 31, .spread = 4});
    for (const char *place : {"", "overwrites"})
      cases.add("dg.pick_log_softmax_grad", {"2x3xf32", "2x3xf32", shape, "2x3xi64", "2x3xf32"}, place,
                {.positive = true, .indexBound = isOne ? 1 : 31});
  }
  cases.add("dg.pick", {"2x3x31xf32", "2x3xi64"}, "", {.tolerance = 0, .indexBound = 31});
  cases.add("dg.pick_grad", {"2x3xf32", "2x3xi64"}, "classes = 31 : i64", {.tolerance = 0, .indexBound = 31});
  cases.add("dg.correct", {"40x101xf32", "40xi64"}, "", {.tolerance = 0, .indexBound = 2});
  cases.check();
}

// dy - exp(y) · Σ dy with dy = (0, 1) is -exp(y) in the first column: the exponential function alone.
TEST(NormalizationKernels, ExponentialIsAccurate) {
  constexpr int64_t rows = 200000;
  KernelCases cases;
  auto spec = cases.kernels().addKernel(cases.make("dg.log_softmax_grad", {"200000x2xf32", "200000x2xf32"}, ""));
  ASSERT_TRUE(mlir::succeeded(spec));
  auto bytes = cases.kernels().emitObject();
  ASSERT_TRUE(mlir::succeeded(bytes));
  LoadedObject object(*bytes);
  std::vector<float> storage(3 * 2 * rows + 48);
  auto *start = reinterpret_cast<float *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
  float *grad = start, *output = start + 2 * rows, *result = start + 4 * rows;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {infinity, -infinity, std::nanf(""), -1000, 1000, 0, -0.0f};
  for (int64_t i = 0; i < rows; ++i) {
    grad[2 * i] = 0, grad[2 * i + 1] = 1;
    output[2 * i] = i < int64_t(std::size(special)) ? special[i] : -87.3f + 175.9f * float(i) / float(rows);
    output[2 * i + 1] = 0;
  }
  void *pointers[] = {grad, output, result};
  dg_scalars scalars{};
  for (uint32_t tile = 0; tile < spec->tiles; ++tile)
    reinterpret_cast<dg_kernel>(object.find(spec->symbol))(pointers, &scalars, tile);
  EXPECT_EQ(-result[0], infinity);
  EXPECT_EQ(-result[2], 0.0f);
  EXPECT_TRUE(std::isnan(result[4]));
  EXPECT_EQ(-result[6], 0.0f);
  EXPECT_EQ(-result[8], infinity);
  EXPECT_EQ(-result[10], 1.0f);
  EXPECT_EQ(-result[12], 1.0f);
  double worst = 0;
  for (int64_t i = int64_t(std::size(special)); i < rows; ++i) {
    double want = std::exp(double(output[2 * i]));
    worst = std::max(worst, std::abs(-double(result[2 * i]) - want) / want);
  }
  EXPECT_LE(worst, 2e-7);
  RecordProperty("worst_relative_error", std::to_string(worst));
  std::printf("worst relative error of exp: %.3g\n", worst);
}
