// Receives come first and in their order, a collective right behind what it reads; a cut parameter is gathered while the one before it is used.
// RUN: dg-opt %s --dg-start-communication-early | FileCheck %s

// CHECK-LABEL: dg.graph @train.0.backward(
dg.graph @train.0.backward(%x: tensor<4x4xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 2 : i32} {
  // CHECK-NEXT: dg.receive {channel = 0
  // CHECK-NEXT: dg.receive {channel = 1
  // CHECK-NEXT: dg.relu
  // CHECK-NEXT: %[[G:.+]] = dg.matmul
  // CHECK-NEXT: dg.all_reduce %[[G]]
  // CHECK-NEXT: dg.add
  %r = dg.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = dg.receive {channel = 0 : i64, peer_stage = 1 : i64} : () -> tensor<4x4xf32>
  %g = dg.matmul %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = dg.receive {channel = 1 : i64, peer_stage = 1 : i64} : () -> tensor<4x4xf32>
  %d = dg.add %b, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = dg.all_reduce %g {axis = "data"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  dg.return %d, %s {names = ["d", "s"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()
}

// CHECK-LABEL: dg.graph @train.0.forward(
dg.graph @train.0.forward(%x: tensor<4x4xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  %v = dg.parameter "v" tensor<4x4xf32> uniform 0.5 {place = #dg.place<shardings = <["data", ""], []>>} : tensor<2x4xf32>
  %w = dg.parameter "w" tensor<4x4xf32> uniform 0.5 {place = #dg.place<shardings = <["data", ""], []>>} : tensor<2x4xf32>
  // CHECK: %[[V:.+]] = dg.all_gather
  // CHECK-NEXT: %[[W:.+]] = dg.all_gather
  // CHECK-NEXT: %[[H:.+]] = dg.matmul %{{.+}}, %[[V]]
  // CHECK-NEXT: dg.matmul %[[H]], %[[W]]
  %gv = dg.all_gather %v {axis = "data", dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %h = dg.matmul %x, %gv : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gw = dg.all_gather %w {axis = "data", dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %y = dg.matmul %h, %gw : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  dg.return %y {names = ["y"]} : (tensor<4x4xf32>) -> ()
}
