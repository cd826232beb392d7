// SPDX-License-Identifier: Apache-2.0
// Proves that elementwise, fused, reduction, shape and optimizer kernels compute what their ops' reference evaluation
// does, for broadcasts and sizes around the vector width, with the same bits in any order of tiles.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(ElementwiseKernels, BinaryOpsBroadcast) {
  KernelCases cases;
  CaseOptions strict{.tolerance = 2e-7, .positive = true, .relative = true};
  for (const char *op : {"dg.add", "dg.sub", "dg.mul", "dg.div"})
    cases.add(op, {"37xf32", "37xf32"}, "", {.tolerance = 2e-7, .positive = true});
  cases.add("dg.add", {"64x20xf32", "20xf32"}, "", strict);
  cases.add("dg.add", {"20xf32", "64x20xf32"}, "", strict);
  cases.add("dg.mul", {"64x1xf32", "64x33xf32"}, "", strict);
  cases.add("dg.mul", {"5x7x11xf32", "7x1xf32"}, "", strict);
  cases.add("dg.mul", {"5x1x11xf32", "1x7x1xf32"}, "", strict);
  cases.add("dg.add", {"f32", "f32"}, "", strict);
  cases.add("dg.mul", {"3x5xf32", "f32"}, "", strict);
  cases.add("dg.add", {"1xf32", "1x1xf32"}, "", strict);
  cases.add("dg.add", {"100001xf32", "100001xf32"}, "", strict);
  cases.add("dg.add", {"3x70001xf32", "70001xf32"}, "", strict);
  cases.add("dg.add", {"700x129xf32", "700x129xf32"}, "", strict);
  cases.add("dg.expand", {"7x1xf32"}, "shape = array<i64: 5, 7, 19>");
  cases.add("dg.expand", {"f32"}, "shape = array<i64: 64>");
  cases.check();
}

TEST(ElementwiseKernels, FunctionsAreAccurate) {
  KernelCases cases;
  CaseOptions strict{.tolerance = 1e-6, .relative = true, .spread = 3};
  cases.add("dg.scale", {"64x10xf32"}, "factor = 0.3 : f64", strict);
  cases.add("dg.relu", {"3x101xf32"}, "", strict);
  cases.add("dg.relu_grad", {"3x101xf32", "3x101xf32"}, "", strict);
  // The tanh form loses digits for large negative arguments in any arithmetic: there the result is compared with the
  // largest.
  cases.add("dg.gelu", {"5000xf32"}, "", {.tolerance = 3e-7, .spread = 3});
  cases.add("dg.gelu", {"1009xf32"}, "", {.tolerance = 1e-6, .relative = true, .spread = 0.5});
  cases.add("dg.gelu_grad", {"5000xf32", "5000xf32"}, "", {.tolerance = 5e-7, .spread = 3});
  cases.add("dg.gelu", {"257xf32"}, "", {.spread = 40});
  cases.add("dg.gelu_grad", {"257xf32", "257xf32"}, "", {.spread = 40});
  cases.check();
}

TEST(ElementwiseKernels, FusedRegionIsOneKernel) {
  KernelCases cases;
  cases.addText("dg.fused", R"(
    %a = builtin.unrealized_conversion_cast to tensor<33x20xf32>
    %b = builtin.unrealized_conversion_cast to tensor<20xf32>
      %r, %s = dg.fused %a, %b : (tensor<33x20xf32>, tensor<20xf32>) -> (tensor<33x20xf32>, tensor<33x20xf32>) {
      ^bb0(%x: tensor<33x20xf32>, %y: tensor<20xf32>):
        %sum = dg.add %x, %y : (tensor<33x20xf32>, tensor<20xf32>) -> tensor<33x20xf32>
        %double = dg.scale %y {factor = 2.0 : f64} : (tensor<20xf32>) -> tensor<20xf32>
        %positive = dg.relu %sum : (tensor<33x20xf32>) -> tensor<33x20xf32>
        %product = dg.mul %positive, %double : (tensor<33x20xf32>, tensor<20xf32>) -> tensor<33x20xf32>
        dg.return %positive, %product : (tensor<33x20xf32>, tensor<33x20xf32>) -> ()
      }
    )");
  cases.check();
}

TEST(ReduceKernels, AnyDimensions) {
  KernelCases cases;
  cases.add("dg.reduce_sum", {"64x20xf32"}, "dims = array<i64: 0>");
  cases.add("dg.reduce_sum", {"64x20xf32"}, "dims = array<i64: 1>");
  cases.add("dg.reduce_sum", {"64x20xf32"}, "dims = array<i64: 0, 1>");
  cases.add("dg.reduce_sum", {"64x20xf32"}, "dims = array<i64: 1>, keep");
  cases.add("dg.reduce_sum", {"6x10x5x7xf32"}, "dims = array<i64: 0, 2, 3>");
  cases.add("dg.reduce_sum", {"6x10x5x7xf32"}, "dims = array<i64: 1, 3>, keep");
  cases.add("dg.reduce_sum", {"6x10x5x7xf32"}, "dims = array<i64: 0, 2>");
  cases.add("dg.reduce_sum", {"256x1024xf32"}, "dims = array<i64: 0>");
  cases.add("dg.reduce_sum", {"257x1023xf32"}, "dims = array<i64: 1>");
  cases.add("dg.reduce_sum", {"50021xf32"}, "dims = array<i64: 0>");
  cases.add("dg.reduce_sum", {"1x1xf32"}, "dims = array<i64: 0>");
  cases.add("dg.reduce_sum", {"1x13xf32"}, "dims = array<i64: 0>");
  cases.add("dg.reduce_sum", {"13xf32"}, "dims = array<i64>");
  cases.check();
}

TEST(ShapeKernels, Transpositions) {
  KernelCases cases;
  cases.add("dg.transpose", {"64x20xf32"}, "permutation = array<i64: 1, 0>", {.tolerance = 0});
  cases.add("dg.transpose", {"1x20xf32"}, "permutation = array<i64: 1, 0>", {.tolerance = 0});
  cases.add("dg.transpose", {"3x5xf32"}, "permutation = array<i64: 1, 0>", {.tolerance = 0});
  cases.add("dg.transpose", {"130x517xf32"}, "permutation = array<i64: 1, 0>", {.tolerance = 0});
  cases.add("dg.transpose", {"4x17x3x16xf32"}, "permutation = array<i64: 0, 2, 1, 3>", {.tolerance = 0});
  cases.add("dg.transpose", {"4x17x3x31xf32"}, "permutation = array<i64: 3, 0, 1, 2>", {.tolerance = 0});
  cases.add("dg.transpose", {"4x17x3x31xf32"}, "permutation = array<i64: 2, 3, 0, 1>", {.tolerance = 0});
  cases.add("dg.transpose", {"4x7x3x31xf32"}, "permutation = array<i64: 3, 2, 1, 0>", {.tolerance = 0});
  cases.check();
}

TEST(OptimizerKernels, StepsInPlace) {
  KernelCases cases;
  for (const char *shape : {"20x10xf32", "1xf32", "70001xf32"}) {
    std::string s = shape;
    cases.add("dg.sgd", {s, s});
    cases.add("dg.sgd", {s, s}, "weight_decay = 0.25 : f64");
    cases.add("dg.momentum", {s, s, s}, "momentum = 0.5 : f64");
    cases.add("dg.momentum", {s, s, s}, "momentum = 0.9 : f64, nesterov, weight_decay = 0.125 : f64");
    cases.add("dg.adagrad", {s, s, s}, "lr_decay = 0.5 : f64, weight_decay = 0.01 : f64", {.positive = true});
    cases.add("dg.rmsprop", {s, s, s, s}, "momentum = 0.5 : f64, weight_decay = 0.01 : f64", {.positive = true});
    cases.add("dg.lion", {s, s, s}, "weight_decay = 0.01 : f64");
    cases.add("dg.lamb_direction", {s, s, s, s}, "weight_decay = 0.01 : f64", {.positive = true});
    cases.add("dg.lamb_step", {s, s, "f32", "f32"}, "", {.positive = true});
    cases.add("dg.clip_gradient", {s, "f32"}, "max_norm = 0.5 : f64", {.positive = true});
    cases.add("dg.clip_gradient", {s}, "max_value = 0.5 : f64", {.tolerance = 0});
    cases.add("dg.adam", {s, s, s, s}, "", {.positive = true});
    cases.add("dg.adam", {s, s, s, s}, "weight_decay = 0.01 : f64", {.positive = true, .step = 1});
    cases.add("dg.adam", {s, s, s, s},
              "weight_decay = 0.01 : f64, decoupled, beta1 = 0.8 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-6 : f64",
              {.positive = true, .step = 100000});
    // The last operand is how many steps were skipped: 0.5 to 2, of which the fraction does not count.
    cases.add("dg.adam", {s, s, s, s, "f32"}, "", {.positive = true});
    cases.add("dg.lamb_direction", {s, s, s, s, "f32"}, "", {.positive = true});
    cases.add("dg.adagrad", {s, s, s, "f32"}, "lr_decay = 0.5 : f64", {.positive = true});
    cases.add("dg.sgd", {s, s}, "lr_factor = 4.0 : f64, weight_decay = 0.25 : f64");
    cases.add("dg.momentum", {s, s, s}, "momentum = 0.5 : f64, lr_factor = 4.0 : f64");
    cases.add("dg.adam", {s, s, s, s}, "weight_decay = 0.01 : f64, decoupled, lr_factor = 4.0 : f64",
              {.positive = true});
    cases.add("dg.adagrad", {s, s, s}, "lr_factor = 4.0 : f64", {.positive = true});
    cases.add("dg.rmsprop", {s, s, s, s}, "lr_factor = 4.0 : f64", {.positive = true});
    cases.add("dg.lion", {s, s, s}, "weight_decay = 0.01 : f64, lr_factor = 4.0 : f64");
    cases.add("dg.lamb_step", {s, s, "f32", "f32"}, "lr_factor = 4.0 : f64", {.positive = true});
  }
  cases.add("dg.accumulate", {"20x10xf32"}, "accumulator = \"grad w\"");
  cases.check();
}
