// A parameter that has the name of what the optimizer keeps for another one is an error at that parameter; a trained one
// named as f16's loss scale is none, though no gradient is divided by it.
// RUN: dg-opt %s --dg-add-optimizer=optimizer=sgd:lr=0.1,momentum=0.9 -split-input-file -verify-diagnostics | FileCheck %s

dg.graph @train(%loss: tensor<f32>, %g: tensor<4xf32>) typed {
  %a = dg.parameter "a" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  // expected-error@+1 {{'a.momentum' has the name of what the optimizer keeps for another parameter: give it another name}}
  %b = dg.parameter "a.momentum" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  dg.return %loss, %g, %g {names = ["loss", "grad a", "grad a.momentum"]} : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> ()
}

// -----

// CHECK-LABEL: dg.graph @train
// CHECK-NOT: dg.div
// CHECK: dg.momentum
// CHECK-NOT: dg.div
dg.graph @train(%loss: tensor<f32>, %g: tensor<f32>) typed {
  %a = dg.parameter "loss_scale" tensor<f32> constant 0.5 : tensor<f32>
  dg.return %loss, %g {names = ["loss", "grad loss_scale"]} : (tensor<f32>, tensor<f32>) -> ()
}
