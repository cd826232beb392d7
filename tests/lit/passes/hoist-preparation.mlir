// What an inference computes from parameters alone moves to a program that runs once; what would grow stays.
// RUN: dg-opt %s --dg-hoist-preparation -split-input-file | FileCheck %s

// CHECK-LABEL: dg.graph @prepare.0.forward(
// CHECK-SAME: program = "prepare", stage = 0
// CHECK-NEXT: %[[W:.+]] = dg.parameter "w"
// CHECK-NEXT: %[[T:.+]] = dg.transpose %[[W]]
// CHECK-NEXT: %[[V:.+]] = dg.reshape %[[W]]
// CHECK-NEXT: %[[S:.+]] = dg.relu %[[V]]
// CHECK-NEXT: dg.return %[[T]], %[[S]] {names = ["prepared#0", "prepared#1"]}
// CHECK-LABEL: dg.graph @infer.0.forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<5x4xf32>, %[[P:[a-z0-9]+]]: tensor<4x3xf32>, %[[Q:[a-z0-9]+]]: tensor<12xf32>
// CHECK-SAME: input_names = ["x", "prepared#0", "prepared#1"]
dg.graph @infer.0.forward(%x: tensor<5x4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  %w = dg.parameter "w" tensor<3x4xf32> uniform 0.5 : tensor<3x4xf32>
  %t = dg.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %v = dg.reshape %w {shape = array<i64: 12>} : (tensor<3x4xf32>) -> tensor<12xf32>
  %s = dg.relu %v : (tensor<12xf32>) -> tensor<12xf32>
  // CHECK-NEXT: %[[B:.+]] = dg.parameter "b"
  // CHECK-NEXT: %[[E:.+]] = dg.expand %[[B]]
  %b = dg.parameter "b" tensor<3xf32> uniform 0.5 : tensor<3xf32>
  %e = dg.expand %b {shape = array<i64: 5, 3>} : (tensor<3xf32>) -> tensor<5x3xf32>
  // CHECK-NEXT: %[[Y:.+]] = dg.matmul %[[X]], %[[P]]
  // CHECK-NEXT: %[[Z:.+]] = dg.add %[[Y]], %[[E]]
  // CHECK-NEXT: %[[U:.+]] = dg.reshape %[[Q]]
  // CHECK-NEXT: dg.return %[[Z]], %[[U]]
  %y = dg.matmul %x, %t : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %z = dg.add %y, %e : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %u = dg.reshape %s {shape = array<i64: 3, 4>} : (tensor<12xf32>) -> tensor<3x4xf32>
  dg.return %z, %u {names = ["z", "u"]} : (tensor<5x3xf32>, tensor<3x4xf32>) -> ()
}

// -----

// Parameters that are trained in the same job change.
// CHECK-NOT: prepare
// CHECK-LABEL: dg.graph @train.0.forward(
dg.graph @train.0.forward(%x: tensor<5x4xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  dg.return %x {names = ["x"]} : (tensor<5x4xf32>) -> ()
}
dg.graph @infer.0.forward(%x: tensor<5x4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  // CHECK: dg.transpose
  %w = dg.parameter "w" tensor<3x4xf32> uniform 0.5 : tensor<3x4xf32>
  %t = dg.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = dg.matmul %x, %t : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  dg.return %y {names = ["y"]} : (tensor<5x3xf32>) -> ()
}
