// A loss that is left and a fused op of more than elementwise ops are errors.
// RUN: dg-opt %s --split-input-file --dg-verify-chunks --verify-diagnostics

dg.graph @train.0.forward(%x: tensor<4x6xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  // expected-error @+1 {{'dg.mse' op is left after the layout phase, expected its parts, which have kernels}}
  %loss = dg.mse %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

dg.graph @infer.0.forward(%x: tensor<4x4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  // expected-error @+1 {{'dg.fused' op holds 'dg.transpose', expected elementwise ops}}
  %y = dg.fused %x : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %t = dg.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    dg.return %t : (tensor<4x4xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<4x4xf32>) -> ()
}
