// SPDX-License-Identifier: Apache-2.0
// Proves that kernels draw the numbers of the reference evaluation bit for bit: keys of large seeds and steps, every
// word, alone and inside a fused kernel.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(RandomKernels, Keys) {
  KernelCases cases;
  cases.add("dg.random_key", {}, "stream = 0 : i64", {.tolerance = 0});
  cases.add("dg.random_key", {}, "stream = 1234567890123 : i64",
            {.tolerance = 0, .step = int64_t(1) << 40, .seed = 0xFEDCBA9876543210u});
  cases.check();
}

TEST(RandomKernels, Bits) {
  KernelCases cases;
  for (const char *word : {"0", "1", "2", "3"})
    cases.add("dg.random_bits", {"i64", "7x37xi64"}, std::string("to = f32, word = ") + word + " : i64",
              {.tolerance = 0, .indexBound = int64_t(1) << 30});
  cases.add("dg.random_bits", {"i64", "19xi64"}, "to = f64", {.tolerance = 0, .indexBound = int64_t(1) << 30});
  cases.add("dg.random_bits", {"i64", "19xi64"}, "to = bf16", {.indexBound = int64_t(1) << 30});
  cases.addText("dg.fused",
                R"(dg.graph @g(%k: tensor<i64>, %r: tensor<5x1xi64>, %c: tensor<9xi64>, %x: tensor<5x9xf32>) typed {
    %y = dg.fused %k, %r, %c, %x : (tensor<i64>, tensor<5x1xi64>, tensor<9xi64>, tensor<5x9xf32>) -> tensor<5x9xf32> {
    ^bb0(%key: tensor<i64>, %rows: tensor<5x1xi64>, %columns: tensor<9xi64>, %in: tensor<5x9xf32>):
      %i = dg.add %rows, %columns : (tensor<5x1xi64>, tensor<9xi64>) -> tensor<5x9xi64>
      %u = dg.random_bits %key, %i {to = f32} : (tensor<i64>, tensor<5x9xi64>) -> tensor<5x9xf32>
      %m = dg.mul %u, %in : (tensor<5x9xf32>, tensor<5x9xf32>) -> tensor<5x9xf32>
      dg.return %m : (tensor<5x9xf32>) -> ()
    }
    dg.return %y : (tensor<5x9xf32>) -> ()
  })",
                {.indexBound = int64_t(1) << 30});
  cases.check();
}
