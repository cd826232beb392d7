// Each op of a graph gets its number; whatever is made of it keeps it, so that @train and @eval number alike although
// only one of them has statistics of the batch.
// RUN: dg-opt %s --dg-number-ops | FileCheck %s
// RUN: dg-opt %s --dg-deduce-types --dg-number-ops --dg-add-evaluation --dg-weigh-samples --dg-training-forms --dg-decompose --dg-differentiate | FileCheck %s --check-prefix=PARTS

// CHECK: dg.parameter "w" {{.*}}origin = 0
// CHECK: dg.parameter "rm" {{.*}}origin = 1
// CHECK: dg.parameter "rv" {{.*}}origin = 2
// CHECK: dg.linear {{.*}}origin = 3
// CHECK: dg.batch_norm {{.*}}origin = 4
// CHECK: dg.mse {{.*}}origin = 5
// PARTS-LABEL: dg.graph @train(
// PARTS: dg.matmul {{.*}}origin = 3
// PARTS: dg.moments {{.*}}origin = 4
// PARTS: dg.normalize {{.*}}origin = 4
// PARTS: dg.mul {{.*}}origin = 5
// PARTS: dg.normalize_sums {{.*}}origin = 4, phase = backward
// PARTS: dg.matmul {{.*}}origin = 3, phase = backward
// PARTS-LABEL: dg.graph @eval(
// PARTS: dg.matmul {{.*}}origin = 3
// PARTS-NOT: dg.moments
// PARTS: dg.normalize {{.*}}origin = 4
// PARTS: dg.mul {{.*}}origin = 5
dg.graph @loss(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) {
  %w = dg.parameter "w" tensor<2x3xf32> uniform 0.5
  %rm = dg.parameter "rm" tensor<2xf32> constant 0.0 {state}
  %rv = dg.parameter "rv" tensor<2xf32> constant 1.0 {state}
  %h = dg.linear %x, %w
  %n = dg.batch_norm %h, %rv, %rm, %rm, %rv
  %loss = dg.mse %n, %y
  dg.return %loss
}
