// A scan whose body and operands do not fit is an error at the scan, or at the op of its body.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<5x3xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+1 {{'dg.scan' op scans 'tensor<5x3xf32>' and 'tensor<4x3xf32>', expected the same known number of slices in dimension 0}}
  %r = dg.scan over(%a = %x, %b = %y) {
    %s = dg.add %a, %b
    dg.return %s
  }
  dg.return %r
}

// -----

dg.graph @forward(%h0: tensor<2xf32>, %x: tensor<5x3x2xf32>) {
  // expected-error@+1 {{'dg.scan' op carries 'tensor<2xf32>' but its body returns 'tensor<3x2xf32>', expected equal types}}
  %r = dg.scan carry(%h = %h0) over(%a = %x) {
    %s = dg.add %a, %h
    dg.return %s
  }
  dg.return %r
}

// -----

dg.graph @forward(%x: tensor<5x3xf32>) {
  // expected-error@+1 {{'dg.scan' op carries 0, scans 1 and sums 0 values with 1 operands, 1 arguments of its body, 2 values that it returns and 1 results, expected at least one scanned value}}
  %r = dg.scan over(%a = %x) {
    dg.return %a, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%x: tensor<5x3xf32>) {
  // expected-error@+1 {{'dg.scan' op has a body that does not end with dg.return, expected the values of the next trip and those that are stacked}}
  %r = dg.scan over(%a = %x) {
    %s = dg.relu %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%x: tensor<5x3xf32>) {
  %r = dg.scan over(%a = %x) {
    // expected-error@+1 {{'dg.parameter' op is in a graph inside another, expected an op that computes; pass it in as an operand}}
    %w = dg.parameter "w" tensor<3xf32> uniform 0.5
    %s = dg.mul %a, %w
    dg.return %s
  }
  dg.return %r
}

// -----

dg.graph @forward(%x: tensor<5x3xf32>) {
  %r = dg.scan over(%a = %x) {
    // expected-error@+1 {{'dg.transpose' op permutes 'tensor<3xf32>' by array<i64: 1, 0>, expected each of 0 to 0 once}}
    %s = dg.transpose %a {permutation = array<i64: 1, 0>}
    dg.return %s
  }
  dg.return %r
}
