// Weights and options of a recurrent layer that do not fit are an error at the layer.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op has direction "both", expected forward, reverse or bidirectional}}
  %y, %h = dg.rnn %x, %w, %r {direction = "both"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op has input 'tensor<7x4x3xf32>', weight 'tensor<1x5x3xf32>' and recurrent 'tensor<1x5x5xf32>', expected [time, batch, in], [2, 1 · hidden, in] and [2, 1 · hidden, hidden] of one floating-point type}}
  %y, %h = dg.rnn %x, %w, %r {direction = "bidirectional"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op names 0 extra operands and has 1, expected as many}}
  %y, %h = dg.rnn %x, %w, %r, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op has an extra operand "peephole", expected one of: bias, lengths, initial_h}}
  %y, %h = dg.rnn %x, %w, %r, %w {extra = ["peephole"]}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op has bias 'tensor<1x5x3xf32>', expected 'tensor<1x10xf32>'}}
  %y, %h = dg.rnn %x, %w, %r, %w {extra = ["bias"]}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<7x4x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error@+1 {{'dg.rnn' op has activations ["tanh", "gelu"], expected 1 of tanh, sigmoid, relu, softsign, softplus, or as many for each direction}}
  %y, %h = dg.rnn %x, %w, %r {activations = ["tanh", "gelu"]}
  dg.return %y
}
