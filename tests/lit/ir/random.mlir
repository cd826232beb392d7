// Ops that draw random numbers deduce their types, print as text that parses to the same, and become draws of one generator by each
// element's place; dropout is nothing outside of training.
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-number-ops --dg-decompose | FileCheck %s --check-prefix=PARTS

// CHECK-LABEL: dg.graph @forward(
// PARTS-LABEL: dg.graph @forward(
dg.graph @forward(%x: tensor<?x3xf32>) {
  // CHECK: dg.random_uniform {{.*}} -> tensor<2x3xf32>
  // PARTS: dg.random_key {{.*}}stream = 0 : i64{{.*}} -> tensor<i64>
  // PARTS: dg.random_bits {{.*}} -> tensor<2x3xf32>
  %a = dg.random_uniform {type = tensor<2x3xf32>, low = -1.0}
  // CHECK: dg.random_normal %{{.*}} -> tensor<4x3xf32>
  // PARTS: dg.random_key {{.*}}stream = 1 : i64
  // PARTS: dg.random_bits {{.*}}word = 0
  // PARTS: dg.random_bits {{.*}}word = 1
  // PARTS: dg.log1p
  %b = dg.random_normal %x
  // CHECK: dg.dropout {{.*}}rate = 1.000000e-01{{.*}} -> tensor<4x3xf32>
  // PARTS-NOT: dg.dropout
  %c = dg.dropout %x {rate = 0.1}
  // CHECK: dg.random_key {{.*}} -> tensor<i64>
  %k = dg.random_key {stream = 7}
  %i = dg.iota {dim = 0 : i64, type = tensor<5xi64>}
  // CHECK: dg.random_bits {{.*}} -> tensor<5xf64>
  %u = dg.random_bits %k, %i {to = f64, word = 3}
  dg.return %a, %b, %c, %u
}
