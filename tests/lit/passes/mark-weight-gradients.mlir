// A backward op may wait when only its update needs it, through ops of its own origin; what leads to a layer before it may not.
// RUN: dg-opt %s --dg-mark-weight-gradients | FileCheck %s

// CHECK-LABEL: dg.graph @train(
dg.graph @train(%g: tensor<4x4xf32>, %x: tensor<4x4xf32>) typed {
  %w = dg.parameter "w" tensor<4x4xf32> uniform 0.5 {place = #dg.place<origin = 1, stage = 0>} : tensor<4x4xf32>
  // CHECK: dg.matmul
  // CHECK-NOT: weight_gradient
  %dx = dg.matmul %g, %w {place = #dg.place<label = "dx", origin = 1, phase = backward, stage = 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: dg.matmul {{.*}}dg.weight_gradient{{.*}}label = "dw"
  %dw = dg.matmul %g, %x {place = #dg.place<label = "dw", origin = 1, phase = backward, stage = 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: dg.scale {{.*}}dg.weight_gradient{{.*}}label = "scaled"
  %s = dg.scale %dw {factor = 0.5, place = #dg.place<label = "scaled", origin = 1, phase = backward, stage = 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // An op of the layer before uses dx, and only the update what that gives.
  // CHECK: dg.scale {{.*}}dg.weight_gradient{{.*}}label = "before"
  %b = dg.scale %dx {factor = 0.5, place = #dg.place<label = "before", origin = 0, phase = backward, stage = 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: dg.add
  // CHECK-NOT: weight_gradient
  // CHECK: dg.return
  %n = dg.add %s, %b {place = #dg.place<origin = 1, phase = update, stage = 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  dg.update %n {param = "w", place = #dg.place<origin = 1, phase = update, stage = 0>} : (tensor<4x4xf32>) -> ()
  dg.return {names = [], place = #dg.place<>} : () -> ()
}
