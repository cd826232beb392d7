// A graph @loss or @eval that does not return a mean over samples first, a scalar, is an error where it is none.
// RUN: dg-opt %s --dg-weigh-samples -split-input-file -verify-diagnostics

dg.graph @loss(%x: tensor<4xf32>) typed {
  // expected-error@+1 {{'dg.return' op returns nothing, expected the loss first}}
  dg.return
}

// -----

dg.graph @loss(%x: tensor<4xf32>) typed {
  // expected-error@+1 {{returns 'tensor<4xf32>' first, expected the loss, a scalar of floats}}
  dg.return %x : (tensor<4xf32>) -> ()
}

// -----

dg.graph @eval(%loss: tensor<f32>) typed {
  // expected-error@+1 {{returns a loss that depends on no sample}}
  dg.return %loss : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4x2xf32>) typed {
  // expected-error@+1 {{'dg.reduce_max' op takes the samples of a batch together, in the loss, by something else than a mean or a sum}}
  %s = dg.reduce_max %x {dims = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  dg.return %s : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4x2xi32>) typed {
  // expected-error@+1 {{'dg.reduce_sum' op adds up samples of 'tensor<4x2xi32>' in the loss, expected floats}}
  %s = dg.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<4x2xi32>) -> tensor<i32>
  %f = dg.cast %s {to = f32} : (tensor<i32>) -> tensor<f32>
  dg.return %f : (tensor<f32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<2x4xf32>, %y: tensor<4x2xf32>) typed {
  %t = dg.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // expected-error@+1 {{'dg.mse' op compares 'tensor<4x2xf32>', whose dimension 0 does not count the 2 samples of the inputs}}
  %s = dg.mse %t, %y : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<f32>
  dg.return %s : (tensor<f32>) -> ()
}
