// Batch norm in @loss takes the statistics of the samples, weighed so that padding does not count, and moves its running
// ones in the update phase; @eval keeps it. Dropout draws by the number of each sample in the step.
// RUN: dg-opt %s --split-input-file --dg-training-forms | FileCheck %s

// CHECK-LABEL: dg.graph @loss(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x3x2xf32>, %[[WEIGHT:[a-z0-9]+]]: tensor<4xf32>
dg.graph @loss(%x: tensor<4x3x2xf32>, %weights: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  // The share of each row in the micro-batch.
  // CHECK: %[[TOTAL:.+]] = dg.reduce_sum %[[WEIGHT]]
  // CHECK: %[[SAFE:.+]] = dg.add %[[TOTAL]]
  // CHECK: %[[SHARE:.+]] = dg.div %[[WEIGHT]], %[[SAFE]]
  // CHECK: %[[MEAN:.+]] = dg.parameter "rm"
  // CHECK: %[[VARIANCE:.+]] = dg.parameter "rv"
  %g = dg.parameter "g" tensor<3xf32> constant 1.0 : tensor<3xf32>
  %b = dg.parameter "b" tensor<3xf32> constant 0.0 : tensor<3xf32>
  %m = dg.parameter "rm" tensor<3xf32> constant 0.0 {state} : tensor<3xf32>
  %v = dg.parameter "rv" tensor<3xf32> constant 1.0 {state} : tensor<3xf32>
  // CHECK: %[[ROWS:.+]] = dg.reshape %[[SHARE]] {{.*}} -> tensor<4x1x1xf32>
  // CHECK: dg.moments %[[X]], %[[ROWS]], %{{.+}} {dims = array<i64: 0, 2>, {{.*}}scale = 5.000000e-01
  // CHECK: dg.rsqrt
  // CHECK: %[[Y:.+]] = dg.normalize %[[X]]
  // CHECK: %[[OBSERVED:.+]] = dg.mul %{{.+}}, %[[TOTAL]]
  %n = dg.batch_norm %x, %g, %b, %m, %v {momentum = 0.25} : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x2xf32>
  // CHECK: dg.scale %[[MEAN]] {factor = 7.500000e-01 : f64, {{.*}}phase = update
  // CHECK: dg.scale {{.*}} {factor = 2.500000e-01 : f64, {{.*}}phase = update
  // CHECK: %[[NEXT:.+]] = dg.add {{.*}}phase = update
  // CHECK: dg.update %[[NEXT]] {param = "rm"
  // CHECK: dg.scale %[[VARIANCE]]
  // CHECK: dg.update {{.*}}param = "rv"
  // CHECK: dg.return %[[Y]]
  dg.return %n : (tensor<4x3x2xf32>) -> ()
}

// CHECK-LABEL: dg.graph @eval(
dg.graph @eval(%x: tensor<4x3x2xf32>, %g: tensor<3xf32>) typed {
  // CHECK: dg.batch_norm
  // CHECK-NOT: dg.update
  %n = dg.batch_norm %x, %g, %g, %g, %g : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x2xf32>
  dg.return %n : (tensor<4x3x2xf32>) -> ()
}

// -----

// CHECK-LABEL: dg.graph @loss(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x3xf32>, %{{[a-z0-9]+}}: tensor<4xf32>, %[[INDEX:[a-z0-9]+]]: tensor<4xi64>
// CHECK-SAME: input_names = ["x", "sample_weight", "sample_index"]
dg.graph @loss(%x: tensor<8x3xf32>, %weights: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  // Two rows for each sample: 6 numbers.
  // CHECK: %[[KEY:.+]] = dg.random_key
  // CHECK: %[[SIZE:.+]] = dg.constant {{.*}}value = 6.000000e+00
  // CHECK: %[[SAMPLES:.+]] = dg.reshape %[[INDEX]] {{.*}} -> tensor<4x1x1xi64>
  // CHECK: dg.mul %[[SAMPLES]], %[[SIZE]]
  // CHECK: dg.add {{.*}} -> tensor<4x2x1xi64>
  // CHECK: %[[PLACE:.+]] = dg.add {{.*}} -> tensor<4x2x3xi64>
  // CHECK: %[[UNIT:.+]] = dg.random_bits %[[KEY]], %[[PLACE]]
  // CHECK: dg.compare %[[UNIT]], {{.*}}predicate = "ge"
  // CHECK: dg.scale {{.*}} {factor = 1.3333333333333333 : f64
  // CHECK: dg.mul %[[X]]
  %n = dg.dropout %x {rate = 0.25} : (tensor<8x3xf32>) -> tensor<8x3xf32>
  dg.return %n : (tensor<8x3xf32>) -> ()
}

// -----

// Over frozen statistics batch norm stays what it is in evaluation, and nothing moves them.
// CHECK-LABEL: dg.graph @loss(
dg.graph @loss(%x: tensor<4x3x2xf32>, %weights: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  %g = dg.parameter "g" tensor<3xf32> constant 1.0 : tensor<3xf32>
  %m = dg.parameter "rm" tensor<3xf32> constant 0.0 {frozen, state} : tensor<3xf32>
  %v = dg.parameter "rv" tensor<3xf32> constant 1.0 {frozen, state} : tensor<3xf32>
  // CHECK: dg.batch_norm
  // CHECK-NOT: dg.update
  // CHECK: dg.return
  %n = dg.batch_norm %x, %g, %g, %m, %v : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3x2xf32>
  dg.return %n : (tensor<4x3x2xf32>) -> ()
}
