// A convolution with blocked channels is refused where its types, frame or region do not fit, with what was expected.
// RUN: dg-opt %s -split-input-file -verify-diagnostics

dg.graph @channels(%x: tensor<1x2x4x4x8xf32>, %w: tensor<1x2x1x1x16x16xf32>) typed {
  // expected-error@+1 {{has input 'tensor<1x2x4x4x8xf32>' and weight 'tensor<1x2x1x1x16x16xf32>', expected [n, c / 16, h, w, 16]}}
  %y = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x2x4x4x8xf32>, tensor<1x2x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @strides(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x1x1x16x16xf32>) typed {
  // expected-error@+1 {{has strides array<i64: 0, 1> and frame array<i64: 0, 0>, expected two strides above 0 and two frames of 0 or more}}
  %y = dg.blocked_conv %x, %w {strides = array<i64: 0, 1>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @kernel(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x5x1x16x16xf32>) typed {
  // expected-error@+1 {{expected a kernel that fits}}
  %y = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x5x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @frame(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x1x1x16x16xf32>) typed {
  // expected-error@+1 {{has result 'tensor<1x1x4x4x16xf32>', expected the shape 'tensor<1x1x6x4x16xf32>'}}
  %y = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>, frame = array<i64: 1, 0>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @arguments(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x1x1x16x16xf32>, %b: tensor<16xf32>) typed {
  // expected-error@+1 {{has a region of 1 arguments, expected the sums 'tensor<1x1x4x4x16xf32>' and 1 extra operands}}
  %y = dg.blocked_conv %x, %w, %b {strides = array<i64: 1, 1>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16x16xf32>, tensor<16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @extra(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x1x1x16x16xf32>, %b: tensor<3x16xf32>) typed {
  // expected-error@+1 {{has an extra operand 'tensor<3x16xf32>' for an argument 'tensor<3x16xf32>', expected equal types that broadcast to 'tensor<1x1x4x4x16xf32>'}}
  %y = dg.blocked_conv %x, %w, %b {strides = array<i64: 1, 1>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16x16xf32>, tensor<3x16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>, %e: tensor<3x16xf32>):
    dg.return %s : (tensor<1x1x4x4x16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}

// -----

dg.graph @region(%x: tensor<1x2x4x4x16xf32>, %w: tensor<1x2x1x1x16x16xf32>, %b: tensor<16xf32>) typed {
  // expected-error@+1 {{has a region that does not return one value of the shape of 'tensor<1x1x4x4x16xf32>'}}
  %y = dg.blocked_conv %x, %w, %b {strides = array<i64: 1, 1>} : (tensor<1x2x4x4x16xf32>, tensor<1x2x1x1x16x16xf32>, tensor<16xf32>) -> tensor<1x1x4x4x16xf32> {
  ^bb0(%s: tensor<1x1x4x4x16xf32>, %e: tensor<16xf32>):
    dg.return %e : (tensor<16xf32>) -> ()
  }
  dg.return %y {names = ["y"]} : (tensor<1x1x4x4x16xf32>) -> ()
}
