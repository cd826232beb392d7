// Sizes, modes and matrices of constants that do not fit are an error at the op, which says what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resample' op has dimension 2 of 'tensor<4x5xf32>', expected one of known size}}
  %y = dg.resample %x {dim = 2, offsets = array<i64: 0>, places = array<i64>, weights = array<f64>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resample' op has offsets array<i64: 0, 1>, 1 places and 1 weights for 'tensor<4x5xf32>', expected rows of as many places, below the size of the dimension, as weights}}
  %y = dg.resample %x {dim = 1, offsets = array<i64: 0, 1>, places = array<i64: 5>, weights = array<f64: 1.0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xi32>) {
  // expected-error@+1 {{'dg.resample' op weighs 'tensor<4x5xi32>', expected floating-point elements, or weights of 1}}
  %y = dg.resample %x {dim = 1, offsets = array<i64: 0, 1>, places = array<i64: 4>, weights = array<f64: 0.5>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resize' op has mode "area", expected nearest, linear or cubic}}
  %y = dg.resize %x {sizes = array<i64: -1, 3>, mode = "area"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resize' op has coordinates "pixel", expected half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric or tf_crop_and_resize}}
  %y = dg.resize %x {sizes = array<i64: -1, 3>, coordinates = "pixel"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resize' op has rounding "even", expected round_prefer_floor, round_prefer_ceil, floor or ceil}}
  %y = dg.resize %x {sizes = array<i64: -1, 3>, rounding = "even"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resize' op resizes 'tensor<4x5xf32>' to array<i64: 3> with scales}}
  %y = dg.resize %x {sizes = array<i64: 3>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{expected 2 of each, and a roi of twice as many with tf_crop_and_resize alone}}
  %y = dg.resize %x {sizes = array<i64: -1, 3>, coordinates = "tf_crop_and_resize"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xi32>) {
  // expected-error@+1 {{'dg.resize' op weighs 'tensor<4x5xi32>' in mode "linear", expected floating-point elements or mode "nearest"}}
  %y = dg.resize %x {sizes = array<i64: -1, 3>, mode = "linear"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.resize' op resizes dimension 1 of 'tensor<4x5xf32>' to 0, expected a known size above 0, or -1 to keep it}}
  %y = dg.resize %x {sizes = array<i64: -1, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x4x9xf32>) {
  // expected-error@+1 {{'dg.col2im' op has an image of 2 dimensions, expected as many numbers, none too small or above 2^30, in kernel, strides, dilations, low and high}}
  %y = dg.col2im %x {image = array<i64: 4, 4>, kernel = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'dg.col2im' op has patches 'tensor<1x4x8xf32>', expected [n, c · 4, 9]}}
  %y = dg.col2im %x {image = array<i64: 4, 4>, kernel = array<i64: 2, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'dg.col2im' op has an image of 2 dimensions, expected as many numbers, none too small or above 2^30}}
  %y = dg.col2im %x {image = array<i64: 9223372036854775806, 4>, kernel = array<i64: 2, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x4x8xf32>) {
  // expected-error@+1 {{'dg.col2im' op has patches 'tensor<1x4x8xf32>'}}
  %y = dg.col2im %x {image = array<i64: 1073741824, 1073741824, 1073741824>, kernel = array<i64: 1, 1, 1>}
  dg.return %y
}
