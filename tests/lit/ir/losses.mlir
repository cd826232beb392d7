// Losses of pairs of elements print as text that parses to the same, deduce a scalar, and refuse operands that differ.
// RUN: dg-opt %s --dg-deduce-types > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: sed 's/delta = 0.5/delta = 0.0/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=DELTA
// RUN: sed 's/dg.smooth_l1 %x, %y/dg.smooth_l1 %x, %y {beta = -1.0}/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: sed 's/tensor<4x3xf32>, %y/tensor<4x2xf32>, %y/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=WRONG

// DELTA: error: 'dg.huber' op has delta 0.000000e+00 : f64, expected a number above 0
// BETA: error: 'dg.smooth_l1' op has beta -1.000000e+00 : f64, expected a number above 0: dg.l1 is its limit
// WRONG: error: 'dg.l1' op has prediction 'tensor<4x2xf32>' and target 'tensor<4x3xf32>', expected equal types [samples, …]
// CHECK-LABEL: dg.graph @forward(
dg.graph @forward(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) {
  // CHECK: dg.l1 {{.*}} -> tensor<f32>
  %a = dg.l1 %x, %y
  // CHECK: dg.huber {{.*}}delta = 5.000000e-01{{.*}} -> tensor<f32>
  %b = dg.huber %x, %y {delta = 0.5}
  // CHECK: dg.smooth_l1 {{.*}}beta = 1.000000e+00{{.*}} -> tensor<f32>
  %c = dg.smooth_l1 %x, %y
  // CHECK: dg.bce_with_logits {{.*}} -> tensor<f32>
  %d = dg.bce_with_logits %x, %y
  // CHECK: dg.kl_div {{.*}} -> tensor<f32>
  %e = dg.kl_div %x, %y
  dg.return %a, %b, %c, %d, %e
}
