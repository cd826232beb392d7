// What cannot be trained is an error at the guilty op: an op without a gradient in front of a parameter, a parameter
// that the loss does not reach, a loss without parameters.
// RUN: dg-opt %s --dg-differentiate -split-input-file -verify-diagnostics

dg.graph @loss(%y: tensor<4xi32>) typed {
  %w = dg.parameter "w" tensor<4x3xf32> uniform 0.5 : tensor<4x3xf32>
  // expected-error@+1 {{'dg.correct' op has no gradient, but a trained parameter lies behind it}}
  %c = dg.correct %w, %y : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<4xf32>
  %loss = dg.reduce_sum %c {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4xf32>) typed {
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  // expected-error@+1 {{'spare' is trained but the loss does not depend on it: mark it frozen or remove it}}
  %spare = dg.parameter "spare" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  %p = dg.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = dg.reduce_sum %p {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4x2xbf16>) typed {
  %w = dg.parameter "w" tensor<2x3xf32> uniform 0.5 : tensor<2x3xf32>
  // expected-error@+1 {{'dg.matmul' op has a cast as part of it, which --dg-fuse-casts puts there after gradients are taken}}
  %p = dg.matmul %x, %w {to = f32} : (tensor<4x2xbf16>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %loss = dg.reduce_sum %p {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4xf32>) typed {
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 {frozen} : tensor<4xf32>
  %p = dg.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = dg.reduce_sum %p {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // expected-error@+1 {{returns a loss that depends on no parameter: there is nothing to train}}
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

// How often a while runs is known only then.
dg.graph @loss(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %c: tensor<i1>) typed {
  %w = dg.parameter "w" tensor<4x3xf32> uniform 0.5 : tensor<4x3xf32>
  // expected-error@+1 {{'dg.while' op has no gradient, but a trained parameter lies behind it}}
  %p = dg.while %c carry(%a = %w) with(%again = %c) : (tensor<i1>, tensor<4x3xf32>, tensor<i1>) -> tensor<4x3xf32> {
    dg.return %again, %a : (tensor<i1>, tensor<4x3xf32>) -> ()
  }
  %m = dg.mul %p, %p : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %s = dg.reduce_sum %m {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  dg.return %s : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4xf32>) typed {
  // expected-error@+1 {{'table' has type 'tensor<4xi64>', expected floats, since it is to be trained: mark it frozen, or dg.cast floats where integers are needed}}
  %w = dg.parameter "table" tensor<4xi64> constant 1.0 : tensor<4xi64>
  %f = dg.cast %w {to = f32} : (tensor<4xi64>) -> tensor<4xf32>
  %p = dg.mul %x, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = dg.reduce_sum %p {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}
