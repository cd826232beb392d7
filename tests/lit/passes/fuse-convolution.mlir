// A convolution with blocked channels takes along elementwise ops that only read its result, and the zeros around it.
// Of two convolutions that are added, the first takes the sum. A result with two readers stays as it is.
// RUN: dg-opt %s --dg-fuse-convolution | FileCheck %s

// CHECK-LABEL: dg.graph @chain(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x1x4x4x16xf32>, %[[W:[a-z0-9]+]]: tensor<1x1x1x1x16x16xf32>, %[[B:[a-z0-9]+]]: tensor<16xf32>
dg.graph @chain(%x: tensor<1x1x4x4x16xf32>, %w: tensor<1x1x1x1x16x16xf32>, %b: tensor<16xf32>) typed {
  // CHECK-NEXT: dg.constant
  // CHECK-NEXT: %[[D:.+]] = dg.blocked_conv %[[X]], %[[W]]
  // CHECK: %[[C:.+]] = dg.blocked_conv %[[X]], %[[W]], %[[B]], %[[D]] {frame = array<i64: 1, 2>{{.*}}strides = array<i64: 1, 1>} {{.*}} -> tensor<1x1x6x8x16xf32> {
  // CHECK-NEXT: ^bb0(%[[S:.+]]: tensor<1x1x4x4x16xf32>, %[[BI:.+]]: tensor<16xf32>, %[[DI:.+]]: tensor<1x1x4x4x16xf32>):
  // CHECK-NEXT: %[[E:.+]] = dg.add %[[S]], %[[BI]]
  // CHECK-NEXT: %[[F:.+]] = dg.add %[[E]], %[[DI]]
  // CHECK-NEXT: %[[N:.+]] = dg.constant
  // CHECK-NEXT: %[[G:.+]] = dg.mul %[[F]], %[[N]]
  // CHECK-NEXT: dg.return %[[G]]
  // CHECK: dg.return %[[C]]
  %c = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x1x4x4x16xf32>, tensor<1x1x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  %e = dg.add %c, %b : (tensor<1x1x4x4x16xf32>, tensor<16xf32>) -> tensor<1x1x4x4x16xf32>
  %n = dg.constant {value = 2.0 : f64, type = tensor<f32>} : () -> tensor<f32>
  %d = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x1x4x4x16xf32>, tensor<1x1x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  %f = dg.add %e, %d : (tensor<1x1x4x4x16xf32>, tensor<1x1x4x4x16xf32>) -> tensor<1x1x4x4x16xf32>
  %g = dg.mul %f, %n : (tensor<1x1x4x4x16xf32>, tensor<f32>) -> tensor<1x1x4x4x16xf32>
  %p = dg.pad_constant %g {low = array<i64: 0, 0, 1, 2, 0>, high = array<i64: 0, 0, 1, 2, 0>} : (tensor<1x1x4x4x16xf32>) -> tensor<1x1x6x8x16xf32>
  dg.return %p {names = ["p"]} : (tensor<1x1x6x8x16xf32>) -> ()
}

// CHECK-LABEL: dg.graph @readers(
dg.graph @readers(%x: tensor<1x1x4x4x16xf32>, %w: tensor<1x1x1x1x16x16xf32>) typed {
  // CHECK: %[[C:.+]] = dg.blocked_conv
  // CHECK: %[[R:.+]] = dg.relu %[[C]]
  // CHECK: %[[P:.+]] = dg.pad_constant %[[R]]
  // CHECK: dg.return %[[C]], %[[P]]
  %c = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x1x4x4x16xf32>, tensor<1x1x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  %r = dg.relu %c : (tensor<1x1x4x4x16xf32>) -> tensor<1x1x4x4x16xf32>
  %p = dg.pad_constant %r {low = array<i64: 0, 0, 1, 1, 0>, high = array<i64: 0, 0, 1, 1, 0>} : (tensor<1x1x4x4x16xf32>) -> tensor<1x1x6x6x16xf32>
  dg.return %c, %p {names = ["c", "p"]} : (tensor<1x1x4x4x16xf32>, tensor<1x1x6x6x16xf32>) -> ()
}

// Zeros on one side only, or in other dimensions, are not a frame.
// CHECK-LABEL: dg.graph @uneven(
dg.graph @uneven(%x: tensor<1x1x4x4x16xf32>, %w: tensor<1x1x1x1x16x16xf32>) typed {
  // CHECK: dg.blocked_conv
  // CHECK: dg.pad_constant
  %c = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x1x4x4x16xf32>, tensor<1x1x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  %p = dg.pad_constant %c {low = array<i64: 0, 0, 1, 1, 0>, high = array<i64: 0, 0, 1, 0, 0>} : (tensor<1x1x4x4x16xf32>) -> tensor<1x1x6x5x16xf32>
  dg.return %p {names = ["p"]} : (tensor<1x1x6x5x16xf32>) -> ()
}
