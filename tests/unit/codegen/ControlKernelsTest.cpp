// SPDX-License-Identifier: Apache-2.0
// Proves that a kernel that runs a graph of its own computes what the op's reference evaluation does: trips in both
// directions, slices at addresses that are not aligned, carried values that change places, sums, bodies in bodies, both
// branches of an if, and loops that end by themselves, by their limit, or before they begin.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(ControlKernels, Scan) {
  KernelCases cases;
  cases.addText("dg.scan", R"(dg.graph @g(%h0: tensor<5x7xf32>, %xs: tensor<9x5x7xf32>, %w: tensor<7x7xf32>) typed {
    %a, %b, %c = dg.scan carry(%h = %h0) over(%x = %xs) with(%r = %w) attributes {num_sums = 1 : i64} : (tensor<5x7xf32>, tensor<9x5x7xf32>, tensor<7x7xf32>) -> (tensor<5x7xf32>, tensor<9x5x7xf32>, tensor<7x7xf32>) {
      %p = dg.matmul %h, %r {transpose_rhs} : (tensor<5x7xf32>, tensor<7x7xf32>) -> tensor<5x7xf32>
      %k = dg.constant {value = 0.125, type = tensor<5x7xf32>} : () -> tensor<5x7xf32>
      %m = dg.mul %p, %k : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      %s = dg.add %m, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      %g = dg.gelu %s : (tensor<5x7xf32>) -> tensor<5x7xf32>
      %o = dg.matmul %x, %h {transpose_lhs} : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<7x7xf32>
      dg.return %g, %s, %o : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<7x7xf32>) -> ()
    }
    dg.return %a, %b, %c : (tensor<5x7xf32>, tensor<9x5x7xf32>, tensor<7x7xf32>) -> ()
  })");
  cases.addText("dg.scan", R"(dg.graph @g(%a0: tensor<3xf32>, %b0: tensor<3xf32>, %xs: tensor<4x3xf32>) typed {
    %a, %b, %c = dg.scan carry(%g = %a0, %h = %b0) over(%x = %xs) attributes {reverse} : (tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<4x3x1xf32>) {
      %r = dg.reshape %g {shape = array<i64: 3, 1>} : (tensor<3xf32>) -> tensor<3x1xf32>
      dg.return %h, %g, %r : (tensor<3xf32>, tensor<3xf32>, tensor<3x1xf32>) -> ()
    }
    dg.return %a, %b, %c : (tensor<3xf32>, tensor<3xf32>, tensor<4x3x1xf32>) -> ()
  })",
                {.tolerance = 0});
  cases.addText("dg.scan", R"(dg.graph @g(%h0: tensor<3xf64>, %xs: tensor<4x5x3xf64>) typed {
    %a = dg.scan carry(%h = %h0) over(%x = %xs) : (tensor<3xf64>, tensor<4x5x3xf64>) -> tensor<3xf64> {
      %i = dg.scan carry(%g = %h) over(%y = %x) : (tensor<3xf64>, tensor<5x3xf64>) -> tensor<3xf64> {
        %s = dg.sub %y, %g : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        dg.return %s : (tensor<3xf64>) -> ()
      }
      %d = dg.scale %i {factor = 0.5} : (tensor<3xf64>) -> tensor<3xf64>
      dg.return %d : (tensor<3xf64>) -> ()
    }
    dg.return %a : (tensor<3xf64>) -> ()
  })",
                {.tolerance = 1e-14});
  cases.check();
}

TEST(ControlKernels, If) {
  KernelCases cases;
  const char *text = R"(dg.graph @g(%c: tensor<i1>, %x: tensor<5x7xf32>, %w: tensor<7x7xf32>) typed {
    %a, %b = dg.if %c with(%p = %x, %q = %w) : (tensor<i1>, tensor<5x7xf32>, tensor<7x7xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
      %m = dg.matmul %p, %q : (tensor<5x7xf32>, tensor<7x7xf32>) -> tensor<5x7xf32>
      %k = dg.constant {value = 0.5, type = tensor<5x7xf32>} : () -> tensor<5x7xf32>
      dg.return %m, %k : (tensor<5x7xf32>, tensor<5x7xf32>) -> ()
    } else {
      %g = dg.gelu %p : (tensor<5x7xf32>) -> tensor<5x7xf32>
      dg.return %g, %p : (tensor<5x7xf32>, tensor<5x7xf32>) -> ()
    }
    dg.return %a, %b : (tensor<5x7xf32>, tensor<5x7xf32>) -> ()
  })";
  for (int64_t bound : {1, 2, 2, 2, 2, 2}) // false, then drawn
    cases.addText("dg.if", text, {.indexBound = bound});
  cases.check();
}

TEST(ControlKernels, IntegersOfABodyWrap) {
  KernelCases cases;
  cases.addText("dg.scan", R"(dg.graph @g(%h0: tensor<3xui8>, %xs: tensor<9x3xui8>) typed {
    %a = dg.scan carry(%h = %h0) over(%x = %xs) : (tensor<3xui8>, tensor<9x3xui8>) -> tensor<3xui8> {
      %k = dg.constant {value = 100.0, type = tensor<3xui8>} : () -> tensor<3xui8>
      %s = dg.add %h, %k : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
      %m = dg.max %s, %x : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
      dg.return %m : (tensor<3xui8>) -> ()
    }
    dg.return %a : (tensor<3xui8>) -> ()
  })",
                {.tolerance = 0});
  cases.check();
}

TEST(ControlKernels, While) {
  KernelCases cases;
  const char *text = R"(dg.graph @g(%c: tensor<i1>, %n0: tensor<i64>, %x: tensor<3x5xf32>, %w: tensor<5xf32>) typed {
    %n, %y = dg.while %c carry(%i = %n0, %h = %x) with(%r = %w) attributes {max_trips = 6 : i64} : (tensor<i1>, tensor<i64>, tensor<3x5xf32>, tensor<5xf32>) -> (tensor<i64>, tensor<3x5xf32>) {
      %one = dg.constant {value = 1.0, type = tensor<i64>} : () -> tensor<i64>
      %limit = dg.constant {value = 4.0, type = tensor<i64>} : () -> tensor<i64>
      %j = dg.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %m = dg.mul %h, %r : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
      %again = dg.compare %j, %limit {predicate = "ne"} : (tensor<i64>, tensor<i64>) -> tensor<i1>
      dg.return %again, %j, %m : (tensor<i1>, tensor<i64>, tensor<3x5xf32>) -> ()
    }
    dg.return %n, %y : (tensor<i64>, tensor<3x5xf32>) -> ()
  })";
  for (int64_t bound :
       {1, 2, 2, 3, 8, 8, 8, 8}) // never begins; then ends at 4, or by its limit where it started beyond
    cases.addText("dg.while", text, {.indexBound = bound});
  cases.addText("dg.while", R"(dg.graph @g(%c: tensor<i1>, %a0: tensor<3xf32>, %b0: tensor<3xf32>) typed {
    %a, %b = dg.while %c carry(%g = %a0, %h = %b0) attributes {max_trips = 3 : i64} : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %t = dg.constant {value = 1.0, type = tensor<i1>} : () -> tensor<i1>
      dg.return %t, %h, %g : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> ()
    }
    dg.return %a, %b : (tensor<3xf32>, tensor<3xf32>) -> ()
  })",
                {.tolerance = 0, .indexBound = 2});
  cases.check();
}
