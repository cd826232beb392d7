// A log-softmax of which only a pick is read becomes one op with it; one that somebody else reads stays.
// RUN: dg-opt %s --dg-fuse-softmax-pick | FileCheck %s

// CHECK-LABEL: dg.graph @alone(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x6xf32>, %[[Y:[a-z0-9]+]]: tensor<4xi32>
dg.graph @alone(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  // CHECK-NEXT: %[[P:.+]], %{{.+}} = dg.pick_log_softmax %[[X]], %[[Y]] {place = #dg.place<label = "p", origin = 3>}
  // CHECK-NEXT: dg.return %[[P]]
  %l = dg.log_softmax %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = dg.pick %l, %y {place = #dg.place<label = "p", origin = 3>} : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4xf32>
  dg.return %p {names = ["p"]} : (tensor<4xf32>) -> ()
}

// CHECK-LABEL: dg.graph @several_uses(
dg.graph @several_uses(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  // CHECK-NEXT: dg.log_softmax
  // CHECK-NEXT: dg.pick
  // CHECK-NOT: pick_log_softmax
  %l = dg.log_softmax %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = dg.pick %l, %y : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4xf32>
  dg.return %p, %l {names = ["p", "l"]} : (tensor<4xf32>, tensor<4x6xf32>) -> ()
}

// Along another axis the rows are others.
// CHECK-LABEL: dg.graph @other_axis(
dg.graph @other_axis(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  // CHECK-NEXT: dg.log_softmax
  // CHECK-NEXT: dg.pick
  %l = dg.log_softmax %x {axis = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = dg.pick %l, %y : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4xf32>
  dg.return %p {names = ["p"]} : (tensor<4xf32>) -> ()
}
