// Losses of classes take weights, an index that does not count and smoothed labels, print as text that parses to the same, and refuse what
// does not fit. What counts is summed over all samples before the loss is divided by it.
// RUN: dg-opt %s --dg-deduce-types > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-weigh-samples | FileCheck %s --check-prefix=WEIGHED
// RUN: sed 's/label_smoothing = 0.1/label_smoothing = 1.5/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=SMOOTHING
// RUN: sed 's/%w: tensor<3xf32>/%w: tensor<4xf32>/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: sed 's/%y: tensor<4x2xi64>/%y: tensor<4x2xf32>/' %s | not dg-opt --dg-deduce-types 2>&1 | FileCheck %s --check-prefix=TARGET

// SMOOTHING: error: 'dg.cross_entropy' op has label_smoothing 1.500000e+00 : f64, expected a number from 0 to 1
// WEIGHT: error: 'dg.nll' op has prediction 'tensor<4x2x3xf32>' and weight 'tensor<4xf32>', expected a weight for each of the 3 classes
// TARGET: error: 'dg.nll' op has prediction 'tensor<4x2x3xf32>' and target 'tensor<4x2xf32>', expected [samples, …, classes] and integers of shape [samples, …]
// CHECK-LABEL: dg.graph @loss(
// WEIGHED-LABEL: dg.graph @loss(
dg.graph @loss(%x: tensor<4x2x3xf32>, %y: tensor<4x2xi64>, %w: tensor<3xf32>) {
  // CHECK: dg.nll %{{.*}}, %{{.*}}, %{{.*}} {ignore_index = 2 : i64{{.*}} -> tensor<f32>
  %a = dg.nll %x, %y, %w {ignore_index = 2}
  // CHECK: dg.cross_entropy {{.*}}ignore_index = -100 : i64, label_smoothing = 1.000000e-01 : f64{{.*}} -> tensor<f32>
  %b = dg.cross_entropy %x, %y {ignore_index = -100, label_smoothing = 0.1}
  // WEIGHED: dg.log_softmax
  // WEIGHED: %[[COUNTED:.+]] = dg.cast {{.*}} -> tensor<4x2xf32>
  // WEIGHED: dg.reduce_sum {{.*}} -> tensor<f32>
  // WEIGHED: dg.div
  dg.return %b, %a
}
