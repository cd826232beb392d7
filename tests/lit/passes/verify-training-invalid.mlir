// A trained parameter without an update, an update outside of @train, a loss that was not taken apart, and a phase that reads a later
// one are errors.
// RUN: dg-opt %s --split-input-file --dg-verify-training --verify-diagnostics

dg.graph @train(%x: tensor<4x6xf32>) typed {
  // expected-error @+1 {{'dg.parameter' op 'w' is trained and has no update, expected one from --dg-add-optimizer}}
  %w = dg.parameter "w" tensor<6xf32> uniform 0.5 : tensor<6xf32>
  %h = dg.mul %x, %w : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  dg.return %h {names = ["loss"]} : (tensor<4x6xf32>) -> ()
}

// -----

dg.graph @eval(%x: tensor<6xf32>) typed {
  %w = dg.parameter "w" tensor<6xf32> uniform 0.5 : tensor<6xf32>
  // expected-error @+1 {{'dg.update' op writes 'w' outside of @train}}
  dg.update %x {param = "w"} : (tensor<6xf32>) -> ()
  dg.return %w {names = ["w"]} : (tensor<6xf32>) -> ()
}

// -----

dg.graph @train(%x: tensor<4x6xf32>) typed {
  // expected-error @+1 {{'dg.mse' op is left in @train after the train phase, expected its parts}}
  %loss = dg.mse %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// -----

// expected-error @+1 {{'dg.graph' op is left after the train phase, expected @train from --dg-differentiate}}
dg.graph @loss(%x: tensor<4x6xf32>) typed {
  dg.return %x {names = ["loss"]} : (tensor<4x6xf32>) -> ()
}

// -----

dg.graph @train(%x: tensor<6xf32>) typed {
  %g = dg.relu %x {place = #dg.place<phase = backward>} : (tensor<6xf32>) -> tensor<6xf32>
  // expected-error @+1 {{'dg.neg' op of the forward phase reads a result of the backward phase, which comes later}}
  %h = dg.neg %g : (tensor<6xf32>) -> tensor<6xf32>
  dg.return %h {names = ["loss"]} : (tensor<6xf32>) -> ()
}
