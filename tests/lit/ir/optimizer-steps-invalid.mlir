// A norm that is no scalar, or that nothing limits, is an error at the op.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%g: tensor<4xf32>) {
  // expected-error@+1 {{'dg.clip_gradient' op has the square of a norm of type 'tensor<4xf32>', expected a scalar for 'tensor<4xf32>'}}
  %c = dg.clip_gradient %g, %g {max_norm = 1.0}
  dg.return %c
}

// -----

dg.graph @forward(%g: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{'dg.clip_gradient' op has max_norm 0.000000e+00 : f64 and the square of a norm, expected both or none}}
  %c = dg.clip_gradient %g, %s
  dg.return %c
}

// -----

dg.graph @forward(%p: tensor<4xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{'dg.lamb_step' op has the square of a norm of type 'tensor<1xf32>', expected a scalar for 'tensor<4xf32>'}}
  %n = dg.lamb_step %p, %p, %s, %s
  dg.return %n
}
