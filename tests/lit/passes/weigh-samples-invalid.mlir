// A graph @loss or @eval that does not return the result of a loss op first is an error at its return; a loss whose
// rows are no samples is an error at the loss.
// RUN: dg-opt %s --dg-weigh-samples -split-input-file -verify-diagnostics

dg.graph @loss(%x: tensor<4xf32>) typed {
  // expected-error@+1 {{'dg.return' op returns nothing, expected the loss first}}
  dg.return
}

// -----

dg.graph @loss(%x: tensor<4xf32>) typed {
  %s = dg.reduce_sum %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // expected-error@+1 {{returns a value first that no loss op made: end the graph with dg.mse, dg.nll or dg.cross_entropy, and return its result}}
  dg.return %s : (tensor<f32>) -> ()
}

// -----

dg.graph @eval(%loss: tensor<f32>) typed {
  // expected-error@+1 {{returns a value first that no loss op made}}
  dg.return %loss : (tensor<f32>) -> ()
}

// -----

// Rows that are no samples: only the first four of the twelve would count.
dg.graph @loss(%x: tensor<4x3x5xf32>, %y: tensor<4x3x5xf32>) typed {
  %p = dg.reshape %x {shape = array<i64: 12, 5>} : (tensor<4x3x5xf32>) -> tensor<12x5xf32>
  %t = dg.reshape %y {shape = array<i64: 12, 5>} : (tensor<4x3x5xf32>) -> tensor<12x5xf32>
  // expected-error@+1 {{'dg.mse' op is a mean over 12 rows, where no input has so many samples; keep the samples in the first dimension}}
  %0 = dg.mse %p, %t : (tensor<12x5xf32>, tensor<12x5xf32>) -> tensor<f32>
  dg.return %0 : (tensor<f32>) -> ()
}
