// An if or a while whose bodies, condition and operands do not fit is an error at the op, or at the op of its body; a while has no gradient.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%c: tensor<2xi1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.if' op has condition 'tensor<2xi1>', expected one bool: tensor<i1>}}
  %r = dg.if %c with(%a = %x) {
    dg.return %a
  } else {
    dg.return %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dg.if' op has branches that return 'tensor<3xf32>' and 'tensor<4xf32>', expected equal types}}
  %r = dg.if %c with(%a = %x, %b = %y) {
    dg.return %a
  } else {
    dg.return %b
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.if' op has branches that return 1 and 2 values for 1 results, expected as many of each}}
  %r = dg.if %c with(%a = %x) {
    dg.return %a
  } else {
    dg.return %a, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.if' op has a body with 1 arguments for 1 values that it is given, expected as many, and dg.return as its last op}}
  %r = dg.if %c with(%a = %x) {
    dg.return %a
  } else {
    %s = dg.relu %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<f32>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' op has condition 'tensor<f32>', expected one bool: tensor<i1>}}
  %r = dg.while %c carry(%a = %x) {
    dg.return %a, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' op has a body that returns 'tensor<3xf32>' first, expected whether there is another trip: tensor<i1>}}
  %r = dg.while %c carry(%a = %x) {
    dg.return %a, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' op carries 'tensor<3xf32>' but its body returns 'tensor<3x1xf32>', expected equal types}}
  %r = dg.while %c carry(%a = %x) with(%again = %c) {
    %s = dg.reshape %a {shape = array<i64: 3, 1>}
    dg.return %again, %s
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' op carries 1 values, its body returns 1 and it has 1 results, expected at least one carried value}}
  %r = dg.while %c carry(%a = %x) with(%again = %c) {
    dg.return %again
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' op has max_trips -1, expected at least 0}}
  %r = dg.while %c carry(%a = %x) with(%again = %c) attributes {max_trips = -1 : i64} {
    dg.return %again, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.while' has no attribute 'max_trip', expected one of: }}
  %r = dg.while %c carry(%a = %x) with(%again = %c) attributes {max_trip = 9 : i64} {
    dg.return %again, %a
  }
  dg.return %r
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<3xf32>) {
  %r = dg.if %c with(%a = %x) {
    // expected-error@+1 {{'dg.tile' op has a tensor of type 'tensor<843165104133144573xf32>', expected at most 281474976710656 elements}}
    %b = dg.tile %a {repeats = array<i64: 281055034711048191>}
    dg.return %b
  } else {
    dg.return %a
  }
  dg.return %r
}
