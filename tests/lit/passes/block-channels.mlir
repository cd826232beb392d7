// Convolutions, and what can follow them, get images with channels in blocks of 16, without a change of layout between
// them; what anything else reads is brought back. Other programs, and channels that make no blocks, stay as they are.
// RUN: dg-opt %s --dg-block-channels -canonicalize | FileCheck %s

// CHECK-LABEL: dg.graph @infer.0.forward(
dg.graph @infer.0.forward(%x: tensor<1x3x8x8xf32>, %w: tensor<32x3x3x3xf32>, %m: tensor<1x32x1x1xf32>, %v: tensor<16x32x1x1xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  // CHECK: %[[X:.+]] = dg.pad_constant %{{.+}} {high = array<i64: 0, 0, 1, 1>, low = array<i64: 0, 0, 1, 1>{{.*}}} : (tensor<1x3x8x8xf32>) -> tensor<1x3x10x10xf32>
  // CHECK: %[[W:.+]] = dg.transpose %{{.+}} {permutation = array<i64: 0, 2, 3, 4, 1>{{.*}}} : (tensor<2x16x3x3x3xf32>) -> tensor<2x3x3x3x16xf32>
  // CHECK: %[[C:.+]] = dg.blocked_conv %[[X]], %[[W]] {{.*}}-> tensor<1x2x4x4x16xf32>
  %c = dg.conv2d %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<32x3x3x3xf32>) -> tensor<1x32x4x4xf32>
  // A number for each channel only changes its shape.
  // CHECK: %[[M:.+]] = dg.reshape %{{.+}} {{.*}} : (tensor<1x2x16x1x1xf32>) -> tensor<1x2x1x1x16xf32>
  // CHECK: %[[P:.+]] = dg.mul %[[C]], %[[M]] {{.*}} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16xf32>) -> tensor<1x2x4x4x16xf32>
  %p = dg.mul %c, %m : (tensor<1x32x4x4xf32>, tensor<1x32x1x1xf32>) -> tensor<1x32x4x4xf32>
  // CHECK: %[[Q:.+]] = dg.max_pool %[[P]] {{.*}}kernel = array<i64: 2, 2, 1>{{.*}}strides = array<i64: 2, 2, 1>{{.*}} -> tensor<1x2x2x2x16xf32>
  %q = dg.max_pool %p {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilation = array<i64>, padding = array<i64>} : (tensor<1x32x4x4xf32>) -> tensor<1x32x2x2xf32>
  // CHECK: %[[V:.+]] = dg.transpose %{{.+}} {permutation = array<i64: 0, 2, 4, 5, 3, 1>{{.*}}} : (tensor<1x16x2x16x1x1xf32>) -> tensor<1x2x1x1x16x16xf32>
  // CHECK: %[[D:.+]] = dg.blocked_conv %[[Q]], %[[V]] {{.*}} -> tensor<1x1x2x2x16xf32>
  %d = dg.conv2d %q, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>} : (tensor<1x32x2x2xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x2x2xf32>
  // CHECK: %[[T:.+]] = dg.transpose %[[D]] {permutation = array<i64: 0, 1, 4, 2, 3>{{.*}}}
  // CHECK: %[[I:.+]] = dg.reshape %[[T]] {{.*}} -> tensor<1x16x2x2xf32>
  // CHECK: %[[S:.+]] = dg.reduce_sum %[[D]] {dims = array<i64: 2, 3>{{.*}}} : (tensor<1x1x2x2x16xf32>) -> tensor<1x1x16xf32>
  // CHECK: %[[R:.+]] = dg.reshape %[[S]] {{.*}} -> tensor<1x16xf32>
  %s = dg.reduce_sum %d {dims = array<i64: 2, 3>} : (tensor<1x16x2x2xf32>) -> tensor<1x16xf32>
  // CHECK: dg.return %[[I]], %[[R]]
  dg.return %d, %s {names = ["d", "s"]} : (tensor<1x16x2x2xf32>, tensor<1x16xf32>) -> ()
}

// CHECK-LABEL: dg.graph @infer.1.forward(
dg.graph @infer.1.forward(%x: tensor<1x16x8x8xf32>, %w: tensor<10x16x1x1xf32>, %v: tensor<16x17x1x1xf32>, %z: tensor<1x17x8x8xf32>) typed attributes {program = "infer", stage = 1 : i64, phase = 1 : i32} {
  // CHECK-NOT: dg.blocked_conv
  %c = dg.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>} : (tensor<1x16x8x8xf32>, tensor<10x16x1x1xf32>) -> tensor<1x10x8x8xf32>
  %d = dg.conv2d %z, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>} : (tensor<1x17x8x8xf32>, tensor<16x17x1x1xf32>) -> tensor<1x16x8x8xf32>
  dg.return %c, %d {names = ["c", "d"]} : (tensor<1x10x8x8xf32>, tensor<1x16x8x8xf32>) -> ()
}

// CHECK-LABEL: dg.graph @train.0.forward(
dg.graph @train.0.forward(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  // CHECK-NOT: dg.blocked_conv
  %c = dg.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  dg.return %c {names = ["c"]} : (tensor<1x16x8x8xf32>) -> ()
}
