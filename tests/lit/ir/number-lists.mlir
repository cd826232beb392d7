// Lists of numbers may be written plainly: they are the arrays that ops hold, and anything else in them is refused.
// RUN: dg-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: dg.graph @plain
dg.graph @plain(%x: tensor<4x6xf32>) {
  // CHECK: dg.tile %{{.*}} {{{.*}}repeats = array<i64: 1, 3>
  %t = dg.tile %x {repeats = [1, 3]}
  // CHECK: dg.tile %{{.*}} {{{.*}}repeats = array<i64: 2, 1>
  %same = dg.tile %x {repeats = array<i64: 2, 1>}
  dg.return %t, %same
}

// -----

dg.graph @fractions(%x: tensor<4x6xf32>) {
  // expected-error @below {{attribute 'repeats' failed to satisfy constraint: i64 dense array attribute}}
  %t = dg.tile %x {repeats = [1.5, 3]}
  dg.return %t
}

// -----

dg.graph @words(%x: tensor<4x6xf32>) {
  // expected-error @below {{attribute 'repeats' failed to satisfy constraint: i64 dense array attribute}}
  %t = dg.tile %x {repeats = ["a"]}
  dg.return %t
}
