// Without the weights of the samples, or with running statistics that nothing keeps, batch norm cannot be trained.
// RUN: dg-opt %s --dg-training-forms -split-input-file -verify-diagnostics

// expected-error@+1 {{'dg.graph' op has no input 'sample_weight': run --dg-weigh-samples first}}
dg.graph @loss(%x: tensor<4x3xf32>, %g: tensor<3xf32>) typed {
  %n = dg.batch_norm %x, %g, %g, %g, %g : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  dg.return %n : (tensor<4x3xf32>) -> ()
}

// -----

dg.graph @loss(%x: tensor<4x3xf32>, %w: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  %m = dg.parameter "rm" tensor<3xf32> constant 0.0 {state} : tensor<3xf32>
  %v = dg.parameter "rv" tensor<3xf32> constant 1.0 : tensor<3xf32>
  // expected-error@+1 {{'dg.batch_norm' op is trained with a variance that is no state, expected a dg.parameter with {state}, in which the running one is kept}}
  %n = dg.batch_norm %x, %m, %m, %m, %v : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  dg.return %n : (tensor<4x3xf32>) -> ()
}

// -----

// Random numbers are drawn by the samples, which must be where the op says.
dg.graph @loss(%x: tensor<4x3xf32>, %w: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  // expected-error@+1 {{'dg.dropout' op has batch_dim 1 and the result 'tensor<4x3xf32>', expected a dimension of 4 samples, or of several rows for each; -1 where it has none}}
  %n = dg.dropout %x {batch_dim = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  dg.return %n : (tensor<4x3xf32>) -> ()
}

// -----

// Running statistics are held together or not at all.
dg.graph @loss(%x: tensor<4x3xf32>, %w: tensor<4xf32>) typed attributes {input_names = ["x", "sample_weight"]} {
  %m = dg.parameter "rm" tensor<3xf32> constant 0.0 {frozen, state} : tensor<3xf32>
  %v = dg.parameter "rv" tensor<3xf32> constant 1.0 {state} : tensor<3xf32>
  // expected-error@+1 {{'dg.batch_norm' op has some of its running statistics frozen, expected all or none: name both, as 'bn.running_*'}}
  %n = dg.batch_norm %x, %m, %m, %m, %v : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  dg.return %n : (tensor<4x3xf32>) -> ()
}
