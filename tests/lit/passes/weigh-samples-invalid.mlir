// A graph @loss or @eval that does not return the result of a loss op first is an error at its return.
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
