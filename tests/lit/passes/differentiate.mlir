// @loss becomes @train, which also returns one gradient for each trained parameter: gradients of a value with several
// uses are summed, last use first; frozen parameters, optimizer state and ops that lead to no parameter get none; every
// backward op carries the origin of its forward op.
// RUN: dg-opt %s --dg-differentiate -split-input-file | FileCheck %s

// CHECK-NOT: @loss
// CHECK-LABEL: dg.graph @train(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32>
dg.graph @loss(%x: tensor<4xf32>) typed {
  // CHECK: %[[W:.+]] = dg.parameter "w" {{.*}}origin = 0
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  // CHECK: dg.parameter "cold" {{.*}}frozen
  %cold = dg.parameter "cold" tensor<4xf32> uniform 0.5 {frozen} : tensor<4xf32>
  // CHECK: %[[S:.+]] = dg.parameter "kept" {{.*}}state
  %kept = dg.parameter "kept" tensor<4xf32> constant 0.0 {state} : tensor<4xf32>
  // CHECK: dg.mul {{.*}}origin = 3
  %a = dg.mul %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = dg.mul %w, %cold : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: dg.mul {{.*}}origin = 5
  %dead_end = dg.mul %cold, %kept : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = dg.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = dg.add %c, %dead_end : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[LOSS:.+]] = dg.reduce_sum {{.*}}label = "loss", origin = 8>
  %loss = dg.reduce_sum %d {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // The gradient of the loss is one.
  // CHECK: dg.constant {place = #dg.place<label = "loss", origin = 8, phase = backward>, type = tensor<f32>, value = 1.000000e+00 : f64}
  // CHECK: %[[G:.+]] = dg.expand {{.*}} -> tensor<4xf32>
  // No op is the gradient of the dead end.
  // CHECK-NOT: origin = 5
  // The later use comes first: %b (origin 4), then %a (origin 3); their sum belongs to the parameter itself.
  // CHECK: %[[FROM_B:.+]] = dg.mul %[[G]], {{.*}} {place = #dg.place<label = "b", origin = 4, phase = backward>}
  // CHECK: %[[FROM_A:.+]] = dg.mul %[[G]], %[[X]] {place = #dg.place<label = "a", origin = 3, phase = backward>}
  // CHECK: %[[SUM:.+]] = dg.add %[[FROM_B]], %[[FROM_A]] {place = #dg.place<origin = 0, phase = backward>}
  // CHECK: dg.return %[[LOSS]], %[[SUM]] {names = ["loss", "grad w"]
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

// One op that uses a value twice counts twice.
// CHECK-LABEL: dg.graph @train(
dg.graph @loss() typed {
  // CHECK: %[[W:.+]] = dg.parameter "w"
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  %s = dg.mul %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = dg.reduce_sum %s {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // CHECK: %[[G:.+]] = dg.expand
  // CHECK: %[[L:.+]] = dg.mul %[[G]], %[[W]]
  // CHECK: %[[R:.+]] = dg.mul %[[G]], %[[W]]
  // CHECK: %[[SUM:.+]] = dg.add %[[L]], %[[R]]
  // CHECK: dg.return %{{.+}}, %[[SUM]] {names = ["loss", "grad w"]
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

// The chain rule through a layer: gradient at the activation, then at its weight and bias; none at the integers.
// Gradients are returned in the order of the parameters.
// CHECK-LABEL: dg.graph @train(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x3xf32>, %[[Y:[a-z0-9]+]]: tensor<8xi32>
dg.graph @loss(%x: tensor<8x3xf32>, %y: tensor<8xi32>) typed {
  %b = dg.parameter "b" tensor<5xf32> uniform 0.5 : tensor<5xf32>
  %w = dg.parameter "w" tensor<5x3xf32> uniform 0.5 : tensor<5x3xf32>
  %p = dg.matmul %x, %w {transpose_rhs} : (tensor<8x3xf32>, tensor<5x3xf32>) -> tensor<8x5xf32>
  %a = dg.add %p, %b : (tensor<8x5xf32>, tensor<5xf32>) -> tensor<8x5xf32>
  // CHECK: %[[H:.+]] = dg.relu
  %h = dg.relu %a : (tensor<8x5xf32>) -> tensor<8x5xf32>
  %l = dg.pick %h, %y : (tensor<8x5xf32>, tensor<8xi32>) -> tensor<8xf32>
  %loss = dg.reduce_sum %l {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  // CHECK: %[[DH:.+]] = dg.pick_grad %{{.+}}, %[[Y]]
  // CHECK: %[[DA:.+]] = dg.relu_grad %[[DH]], %[[H]]
  // CHECK: %[[DB:.+]] = dg.reduce_sum %[[DA]] {dims = array<i64: 0>{{.*}} -> tensor<5xf32>
  // CHECK: %[[DW:.+]] = dg.matmul %[[DA]], %[[X]] {{.*}}transpose_lhs{{.*}} -> tensor<5x3xf32>
  // CHECK: dg.return %{{.+}}, %[[DB]], %[[DW]] {names = ["loss", "grad b", "grad w"]
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

// A graph that is not @loss is numbered, but not differentiated, and keeps its name.
// CHECK-LABEL: dg.graph @infer(
// CHECK: dg.relu {{.*}}label = "y", origin = 0>
// CHECK-NOT: backward
dg.graph @infer(%x: tensor<4xf32>) typed {
  %y = dg.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  dg.return %y {names = ["y"]} : (tensor<4xf32>) -> ()
}

// -----

// Reading the row of padding does not train it; another use of the table does.
// CHECK-LABEL: dg.graph @train(
// CHECK-SAME: %[[I:[a-z0-9]+]]: tensor<3xi64>
dg.graph @loss(%i: tensor<3xi64>) typed {
  %t = dg.parameter "t" tensor<4x2xf32> normal 0.5 : tensor<4x2xf32>
  %e = dg.embedding %t, %i {padding = 1 : i64} : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %a = dg.reduce_sum %e {dims = array<i64: 0, 1>} : (tensor<3x2xf32>) -> tensor<f32>
  %b = dg.reduce_sum %t {dims = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  // CHECK: %[[OTHER:.+]] = dg.expand {{.*}} -> tensor<4x2xf32>
  // CHECK: %[[G:.+]] = dg.expand {{.*}} -> tensor<3x2xf32>
  // CHECK: %[[ROW:.+]] = dg.constant {{.*}}value = 1.000000e+00 : f64} : () -> tensor<i64>
  // CHECK: %[[IS_OTHER:.+]] = dg.compare %[[I]], %[[ROW]] {{.*}}predicate = "ne"
  // CHECK: %[[MASK:.+]] = dg.reshape %[[IS_OTHER]] {{.*}} -> tensor<3x1xi1>
  // CHECK: %[[TRAINED:.+]] = dg.select %[[MASK]], %[[G]], {{.*}} -> tensor<3x2xf32>
  // CHECK: %[[READ:.+]] = dg.embedding_grad %[[TRAINED]], %[[I]]
  // CHECK: dg.add %[[OTHER]], %[[READ]]
  %loss = dg.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}
