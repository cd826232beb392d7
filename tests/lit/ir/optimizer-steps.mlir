// Optimizer steps and clipping print as text that parses to the same.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: FileCheck %s < %t.first

// CHECK-LABEL: dg.graph @steps(
dg.graph @steps(%p: tensor<4xf32>, %g: tensor<4xf32>, %s: tensor<f32>) typed {
  // CHECK: dg.adagrad
  %a, %a1 = dg.adagrad %p, %g, %g {lr_decay = 0.5} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: dg.rmsprop
  %r, %r1, %r2 = dg.rmsprop %p, %g, %g, %g {momentum = 0.5} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: dg.lion
  %l, %l1 = dg.lion %p, %g, %g : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: dg.lamb_direction
  %d, %d1, %d2 = dg.lamb_direction %p, %g, %g, %g : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: dg.lamb_step
  %n = dg.lamb_step %p, %d, %s, %s : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: dg.clip_gradient
  %c = dg.clip_gradient %g, %s {max_norm = 1.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: dg.clip_gradient
  %v = dg.clip_gradient %g {max_value = 1.0} : (tensor<4xf32>) -> tensor<4xf32>
  dg.return %a, %r, %l, %n, %c, %v : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
}
