// A tensor axis that does not divide the heads is an error at the attention.
// RUN: dg-opt %s --dg-set-mesh=tensor=4 --dg-check-mesh -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<2x5x12xf32>) {
  // expected-error@+1 {{has 6 heads, which do not divide over tensor=4: choose a tensor axis that divides the heads}}
  %a = dg.attention %x, %x, %x {heads = 6}
  // One message is enough.
  %b = dg.attention %x, %x, %x {heads = 6}
  dg.return %a
}

// -----

dg.graph @grouped(%x: tensor<2x5x12xf32>) {
  // expected-error@+1 {{has 2 heads, which do not divide over tensor=4: choose a tensor axis that divides the heads}}
  %g = dg.attention %x, %x, %x {heads = 4, kv_heads = 2}
  dg.return %g
}
