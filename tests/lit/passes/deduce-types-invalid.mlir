// Deduction fails at the input whose dimension nothing binds, and at the first op whose operands do not fit.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

// expected-error@+1 {{input 'x' has type 'tensor<?x3xf32>' with a dimension that nothing binds: give --batch N (or --bind batch=N)}}
dg.graph @forward(%x: tensor<?x3xf32>) {
  %y = dg.relu %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) {
  %w = dg.parameter "w" tensor<2x4xf32> uniform 0.5
  // expected-error@+1 {{contracts 3 of input 'tensor<4x3xf32>' with 4 of weight 'tensor<2x4xf32>', expected equal sizes}}
  %y = dg.linear %x, %w
  %z = dg.matmul %y, %x
  dg.return %z
}

// -----

// Every graph is deduced, not only the first.
dg.graph @first(%x: tensor<4x3xf32>) {
  dg.return %x
}
dg.graph @second(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{permutes 'tensor<4x3xf32>' by array<i64: 1, 1>, expected each of 0 to 1 once}}
  %y = dg.transpose %x {permutation = array<i64: 1, 1>}
  dg.return %y
}
