// Panels that do not fit the rows, or hold other columns than are asked for, are refused.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<2x5xf32>, %p: tensor<2x4x32xf32>) {
  // expected-error@+1 {{'dg.panel_product' op has input 'tensor<2x5xf32>', panels 'tensor<2x4x32xf32>' and 40 columns, expected [rows, depth] and [columns / 32, depth, 32] of f32 or f64}}
  %y = dg.panel_product %x, %p {columns = 40 : i64}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x5xf32>, %p: tensor<2x5x32xf32>) {
  // expected-error@+1 {{'dg.panel_product' op has input 'tensor<2x5xf32>', panels 'tensor<2x5x32xf32>' and 65 columns, expected}}
  %y = dg.panel_product %x, %p {columns = 65 : i64}
  dg.return %y
}
