// A name that does not exist is answered with the nearest one that does.
// RUN: dg-opt %s --split-input-file --verify-diagnostics

dg.graph @op(%x: tensor<4x6xf32>) {
  // expected-error @below {{custom op 'dg.layernorm' is unknown; did you mean dg.layer_norm? (dgc --list-ops prints all)}}
  %y = dg.layernorm %x
  dg.return %y
}

// -----

dg.graph @beginning(%x: tensor<4x6xf32>) {
  // expected-error @below {{custom op 'dg.embedd' is unknown; did you mean dg.embedding? (dgc --list-ops prints all)}}
  %y = dg.embedd %x
  dg.return %y
}

// -----

dg.graph @nothing_near(%x: tensor<4x6xf32>) {
  // expected-error @below {{custom op 'dg.frobnicate' is unknown (dgc --list-ops prints all)}}
  %y = dg.frobnicate %x
  dg.return %y
}

// -----

dg.graph @attribute(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.scale' has no attribute 'facto', expected one of: factor, place; did you mean factor?}}
  %y = dg.scale %x {facto = 2.0}
  dg.return %y
}
