// Rows and indices that do not fit are an error at the op, which says what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<2x7xf32>, %y: tensor<3xi32>) {
  // expected-error@+1 {{'dg.pick_log_softmax' op has rows 'tensor<2x7xf32>' and indices 'tensor<3xi32>', expected one index for each row}}
  %l, %s = dg.pick_log_softmax %x, %y
  dg.return %l
}

// -----

dg.graph @forward(%x: tensor<2x7xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{'dg.pick_log_softmax' op has indices 'tensor<2xf32>', expected integers}}
  %l, %s = dg.pick_log_softmax %x, %y
  dg.return %l
}

// -----

dg.graph @forward(%x: tensor<2x7xf32>, %y: tensor<2xi32>, %g: tensor<2xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{'dg.pick_log_softmax_grad' op has gradient 'tensor<2xf32>', weight 'tensor<2xf32>' and logsumexp 'tensor<3xf32>' for rows 'tensor<2x7xf32>', expected one number for each row}}
  %d = dg.pick_log_softmax_grad %g, %g, %x, %y, %s
  dg.return %d
}
