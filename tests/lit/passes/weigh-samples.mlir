// A loss becomes the sum over samples of the new input sample_weight times the loss of the sample, which is the mean
// over the sample's positions; only @eval also returns the accuracy, and only where the loss is one of classes.
// RUN: dg-opt %s --dg-weigh-samples="metrics=true" -split-input-file | FileCheck %s --check-prefix=METRICS
// RUN: dg-opt %s --dg-weigh-samples -split-input-file | FileCheck %s --implicit-check-not=dg.nll --implicit-check-not=dg.mse

// CHECK-LABEL: dg.graph @loss(
// CHECK-SAME: %[[X:.+]]: tensor<4x6xf32>, %[[Y:.+]]: tensor<4xi32>, %[[W:.+]]: tensor<4xf32>)
// CHECK-SAME: input_names = ["x", "y", "sample_weight"]
// CHECK-NEXT: %[[PICKED:.+]] = dg.pick %[[X]], %[[Y]]
// CHECK-NEXT: %[[EACH:.+]] = dg.scale %[[PICKED]] {factor = -1.000000e+00 : f64}
// CHECK-NEXT: %[[WEIGHTED:.+]] = dg.mul %[[EACH]], %[[W]]
// CHECK-NEXT: %[[LOSS:.+]] = dg.reduce_sum %[[WEIGHTED]] {dims = array<i64: 0>, {{.*}}label = "loss"{{.*}} -> tensor<f32>
// CHECK-NEXT: dg.return %[[LOSS]] {names = ["loss"]}
dg.graph @loss(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  %0 = dg.nll %x, %y : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<f32>
  dg.return %0 : (tensor<f32>) -> ()
}

// CHECK-LABEL: dg.graph @eval(
// CHECK-SAME: %[[X:.+]]: tensor<4x6xf32>, %[[Y:.+]]: tensor<4xi32>, %[[W:.+]]: tensor<4xf32>)
// CHECK: %[[LOSS:.+]] = dg.reduce_sum
// CHECK: %[[RIGHT:.+]] = dg.correct %[[X]], %[[Y]]
// CHECK: %[[COUNTED:.+]] = dg.mul %[[RIGHT]], %[[W]]
// CHECK: %[[ACCURACY:.+]] = dg.reduce_sum %[[COUNTED]]
// CHECK: dg.return %[[LOSS]], %[[ACCURACY]] {names = ["loss", "accuracy"]}
dg.graph @eval(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  %0 = dg.nll %x, %y : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<f32>
  dg.return %0 : (tensor<f32>) -> ()
}

// METRICS-LABEL: dg.graph @eval(
// METRICS: %[[CLASS:.+]] = dg.arg_max
// METRICS: dg.return {{.*}} {names = ["loss", "accuracy", "metric.target", "metric.predicted", "metric.rank"]}

// A graph that is no loss is left alone.
// CHECK-LABEL: dg.graph @forward(%{{.*}}: tensor<4xf32>) typed attributes {input_names = ["x"]}
dg.graph @forward(%x: tensor<4xf32>) typed {
  dg.return %x : (tensor<4xf32>) -> ()
}

// -----

// Terms of a sum are weighed each for itself: a mean by the weights of its samples, what depends on none by their sum.
// CHECK-LABEL: dg.graph @loss(
// CHECK-SAME: %[[X:.+]]: tensor<4x6xf32>, %[[W:[a-z0-9]+]]: tensor<4xf32>) typed
// CHECK: %[[P:.+]] = dg.parameter "p"
// CHECK: %[[COLUMN:.+]] = dg.reshape {{.*}}shape = array<i64: 4, 1>
// CHECK: %[[EACH:.+]] = dg.mul %[[X]], %[[COLUMN]]
// CHECK: %[[SUM:.+]] = dg.reduce_sum %[[EACH]] {dims = array<i64: 0>, keep
// CHECK: %[[MEAN:.+]] = dg.reduce_mean %[[SUM]] {dims = array<i64: 0, 1>
// CHECK: %[[ALL:.+]] = dg.reduce_sum %[[W]]
// CHECK: %[[ONCE:.+]] = dg.mul %[[P]], %[[ALL]]
// CHECK: %[[LOSS:.+]] = dg.add %[[MEAN]], %[[ONCE]] {{.*}}label = "loss"
// CHECK-NEXT: dg.return %[[LOSS]] {names = ["loss"]}
dg.graph @loss(%x: tensor<4x6xf32>) typed {
  %p = dg.parameter "p" tensor<f32> constant 2.0 : tensor<f32>
  %m = dg.reduce_mean %x {dims = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
  %s = dg.add %m, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
  dg.return %s : (tensor<f32>) -> ()
}

// -----

// Each of 4 samples has 3x2 positions: their sum is divided by 6. Mean squared error has no accuracy.
// CHECK-LABEL: dg.graph @eval(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32>) typed
// CHECK: dg.reshape {{.*}}shape = array<i64: 4, 6>
// CHECK: dg.reduce_sum {{.*}} -> tensor<4xf32>
// CHECK: %[[EACH:.+]] = dg.scale {{.*}} {factor = 0.16666666666666666 : f64}
// CHECK: dg.mul %[[EACH]], %[[W]]
// CHECK: dg.return %{{[a-z0-9]+}} {names = ["loss"]} : (tensor<f32>) -> ()
dg.graph @eval(%x: tensor<4x3x2xf32>, %y: tensor<4x3x2xf32>) typed {
  %0 = dg.mse %x, %y : (tensor<4x3x2xf32>, tensor<4x3x2xf32>) -> tensor<f32>
  dg.return %0 : (tensor<f32>) -> ()
}
