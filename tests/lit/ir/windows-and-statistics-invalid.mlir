// Windows that do not fit and statistics of other shapes are errors at the op, with what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<2x3x9x8xf32>) {
  // expected-error@+1 {{'dg.max_pool' op has kernel [3, 0], expected one to three sizes above 0}}
  %a = dg.max_pool %x {kernel = array<i64: 3, 0>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x9x8xf32>) {
  // expected-error@+1 {{'dg.max_pool' op has strides [2], expected 2 above 0, one for each dimension}}
  %a = dg.max_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x9x8xf32>) {
  // expected-error@+1 {{'dg.avg_pool' op has padding [1, 1, 1], expected 2 sizes of 0 or more, or 4: all starts, then all ends}}
  %a = dg.avg_pool %x {kernel = array<i64: 3, 3>, padding = array<i64: 1, 1, 1>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x9x8xf32>) {
  // expected-error@+1 {{'dg.avg_pool' op has dilation [0, 1], expected 2 above 0, one for each dimension}}
  %a = dg.avg_pool %x {kernel = array<i64: 3, 3>, dilation = array<i64: 0, 1>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x9xf32>) {
  // expected-error@+1 {{'dg.max_pool_indices' op has input 'tensor<2x3x9xf32>', expected floats (dg.cast makes them) in [n, c] and 2 more dimensions, as the kernel has sizes}}
  %a = dg.max_pool_indices %x {kernel = array<i64: 3, 3>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x9xf32>) {
  // expected-error@+1 {{'dg.max_pool' op has padding 3 for windows of 3, expected less: a window must reach the input}}
  %a = dg.max_pool %x {kernel = array<i64: 3>, padding = array<i64: 3>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{'dg.max_pool' op has a kernel over 5 of the 4 elements of input 'tensor<2x3x4xf32>', expected a kernel that fits}}
  %a = dg.max_pool %x {kernel = array<i64: 3>, dilation = array<i64: 2>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3x4xf32>, %g: tensor<2x3x3xf32>) {
  // expected-error@+1 {{'dg.max_pool_grad' op has gradient 'tensor<2x3x3xf32>', expected the type of the pooled input, 'tensor<2x3x2xf32>'}}
  %a = dg.max_pool_grad %g, %x {kernel = array<i64: 2>}
  dg.return %a
}

// -----

dg.graph @forward(%g: tensor<2x3x3xf32>) {
  // expected-error@+1 {{'dg.avg_pool_grad' op has gradient 'tensor<2x3x3xf32>' and input_size array<i64: 6, 6>, expected [n, c] and as many sizes above 0 as the kernel has}}
  %a = dg.avg_pool_grad %g {input_size = array<i64: 6, 6>, kernel = array<i64: 2>}
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'dg.global_avg_pool' op has input 'tensor<2x3xf32>', expected floats (dg.cast makes them) in [n, c, …] with at least one place}}
  %a = dg.global_avg_pool %x
  dg.return %a
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'dg.moments' op has input 'tensor<4x3xf32>' and operand 'tensor<4xf32>', expected weight and shift of equal sizes, or 1, counted from the last dimension}}
  %m, %q = dg.moments %x, %w, %w {dims = array<i64: 0>}
  dg.return %m, %q
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32>) {
  // expected-error@+1 {{'dg.moments' op sums 'tensor<4x3xf32>' over dimensions array<i64: 0, 0>, expected different numbers from 0 to 1}}
  %m, %q = dg.moments %x, %w, %w {dims = array<i64: 0, 0>}
  dg.return %m, %q
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>, %m: tensor<1x3xf32>, %s: tensor<4x1xf32>) {
  // expected-error@+1 {{'dg.normalize' op has input 'tensor<4x3xf32>' and operand 'tensor<4x1xf32>', expected mean, scale and bias of one shape with the input's sizes, or 1}}
  %n = dg.normalize %x, %m, %s, %m
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>, %m: tensor<3xf32>) {
  // expected-error@+1 {{'dg.normalize_sums' op has gradient 'tensor<4x3xf32>', input 'tensor<4x3xf32>' and mean 'tensor<3xf32>', expected equal types, and a mean with the input's sizes, or 1}}
  %a, %b = dg.normalize_sums %x, %x, %m
  dg.return %a, %b
}

// -----

dg.graph @forward(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dg.batch_norm' op has input 'tensor<4xf32>', expected floats (dg.cast makes them) in [n, c, …]}}
  %n = dg.batch_norm %x, %x, %x, %x, %x
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<8x4x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{'dg.batch_norm' op has input 'tensor<8x4x5xf32>' and operand 'tensor<5xf32>', expected weight, bias, mean and variance with one element for each of the 4 channels (dimension 1)}}
  %n = dg.batch_norm %x, %w, %w, %w, %w
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<2x6x9xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv' op has input 'tensor<2x6x9xf32>', weight 'tensor<4x6x3xf32>' and 2 groups, expected [n, c, …] with one to three dimensions of places and [o, c / groups, …] of one element type, floats or integers, with groups that divide o}}
  %y = dg.conv %x, %w {groups = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x4xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv' op has a kernel over 5 of the padded 4 elements of input 'tensor<2x6x4xf32>', expected a kernel that fits}}
  %y = dg.conv %x, %w {dilation = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x9xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv' op has bias 'tensor<2x6x9xf32>', expected one of 4 elements}}
  %y = dg.conv %x, %w, %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x9xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv' op has strides [0], expected 1 above 0, one for each dimension}}
  %y = dg.conv %x, %w {strides = array<i64: 0>}
  dg.return %y
}

// -----

dg.graph @forward(%g: tensor<2x4x9xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv_input_grad' op has gradient 'tensor<2x4x9xf32>', expected 'tensor<2x4x8xf32>' for the input 'tensor<2x6x10xf32>'}}
  %y = dg.conv_input_grad %g, %w {input_size = array<i64: 10>}
  dg.return %y
}

// -----

dg.graph @forward(%g: tensor<2x4x9xf32>, %w: tensor<4x6x3xf32>) {
  // expected-error@+1 {{'dg.conv_input_grad' op has gradient 'tensor<2x4x9xf32>', weight 'tensor<4x6x3xf32>' and input_size array<i64: 10, 3>, expected as many sizes as there are dimensions of places, and groups that divide the weight's outputs}}
  %y = dg.conv_input_grad %g, %w {input_size = array<i64: 10, 3>}
  dg.return %y
}

// -----

dg.graph @forward(%g: tensor<2x4x9xf32>, %x: tensor<2x6x9xf32>) {
  // expected-error@+1 {{'dg.conv_weight_grad' op has gradient 'tensor<2x4x9xf32>', expected 'tensor<2x4x7xf32>' for the input 'tensor<2x6x9xf32>'}}
  %y = dg.conv_weight_grad %g, %x {kernel_size = array<i64: 3>}
  dg.return %y
}

// -----

dg.graph @forward(%g: tensor<2x4x9xf32>, %x: tensor<2x6x9xf32>) {
  // expected-error@+1 {{'dg.conv_weight_grad' op has gradient 'tensor<2x4x9xf32>', input 'tensor<2x6x9xf32>' and kernel_size array<i64>, expected as many sizes as there are dimensions of places}}
  %y = dg.conv_weight_grad %g, %x {kernel_size = array<i64>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x9xf32>, %w: tensor<5x6x3xf32>) {
  // expected-error@+1 {{'dg.conv_transpose' op has input 'tensor<2x6x9xf32>', weight 'tensor<5x6x3xf32>' and 1 groups, expected [n, c, …] with one to three dimensions of places and [c, o / groups, …] of one element type, floats or integers, with groups that divide c}}
  %y = dg.conv_transpose %x, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x9xf32>, %w: tensor<6x5x3xf32>) {
  // expected-error@+1 {{'dg.conv_transpose' op has output_padding array<i64: 1>, expected 1 sizes of 0 or more, each below its stride or dilation}}
  %y = dg.conv_transpose %x, %w {output_padding = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x6x1xf32>, %w: tensor<6x5x3xf32>) {
  // expected-error@+1 {{'dg.conv_transpose' op has -1 elements left of its result at dimension 2, expected at least one, and as many as can be counted: less padding or stride}}
  %y = dg.conv_transpose %x, %w {padding = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'dg.mean_variance_norm' op normalizes 'tensor<4x3xf32>' over dimensions array<i64: 2>, expected different numbers from 0 to 1}}
  %n = dg.mean_variance_norm %x {dims = array<i64: 2>}
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x6x2xf32>, %w: tensor<6xf32>) {
  // expected-error@+1 {{'dg.group_norm' op cuts 6 channels into 4 groups, expected a number that divides them}}
  %n = dg.group_norm %x, %w, %w {groups = 4}
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x6x2xf32>, %w: tensor<2xf32>) {
  // expected-error@+1 {{'dg.instance_norm' op has input 'tensor<4x6x2xf32>' and operand 'tensor<2xf32>', expected [n, c, …], and weight and bias with one element for each channel (dimension 1)}}
  %n = dg.instance_norm %x, %w, %w
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'dg.rms_norm' op has input 'tensor<4x6xf32>' and weight 'tensor<4xf32>', expected a weight of the input's last dimensions}}
  %n = dg.rms_norm %x, %w
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dg.lrn' op has input 'tensor<4xf32>' and size 3 : i64, expected [n, c, …] and a size from 1 to 16777216}}
  %n = dg.lrn %x {size = 3}
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x3x5x5xf32>) {
  // expected-error@+1 {{'dg.lp_pool' op has p = 0, expected at least 1}}
  %p = dg.lp_pool %x {kernel = array<i64: 2, 2>, p = 0}
  dg.return %p
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>, %w: tensor<3xf32>) {
  // expected-error@+1 {{'dg.layer_norm' op has input 'tensor<4x3xf32>' and axis 2 : i64, expected one of its dimensions}}
  %n = dg.layer_norm %x, %w, %w {axis = 2}
  dg.return %n
}

// -----

dg.graph @forward(%x: tensor<4x3x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{'dg.layer_norm' op has weight 'tensor<5xf32>' for input 'tensor<4x3x5xf32>', expected floats, and one element for each of the input's dimensions that are normalized}}
  %n = dg.layer_norm %x, %w, %w {axis = 1}
  dg.return %n
}

// -----

dg.graph @g(%x: tensor<2x3x0xf32>) {
  // expected-error@+1 {{'dg.global_max_pool' op has input 'tensor<2x3x0xf32>', expected floats (dg.cast makes them) in [n, c, …] with at least one place}}
  %r = dg.global_max_pool %x
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<2x3x4xi32>) {
  // expected-error@+1 {{'dg.global_avg_pool' op has input 'tensor<2x3x4xi32>', expected floats (dg.cast makes them) in [n, c, …] with at least one place}}
  %r = dg.global_avg_pool %x
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<2x3x4xi32>) {
  // expected-error@+1 {{'dg.avg_pool' op has input 'tensor<2x3x4xi32>', expected floats (dg.cast makes them) in [n, c] and 1 more dimensions, as the kernel has sizes}}
  %r = dg.avg_pool %x {kernel = array<i64: 2>}
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<2x3x4x4xi8>) {
  // expected-error@+1 {{'dg.max_pool2d' op has input 'tensor<2x3x4x4xi8>', expected floats (dg.cast makes them) in [n, c, h, w]}}
  %r = dg.max_pool2d %x {kernel = array<i64: 2, 2>}
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<2x3xi32>) {
  // expected-error@+1 {{'dg.softmax' op has operand 'tensor<2x3xi32>', expected floats (dg.cast makes them) and a dimension}}
  %r = dg.softmax %x
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<2x3xi32>, %w: tensor<3xi32>) {
  // expected-error@+1 {{'dg.layer_norm' op has weight 'tensor<3xi32>' for input 'tensor<2x3xi32>', expected floats, and one element for each of the input's last dimension}}
  %r = dg.layer_norm %x, %w, %w
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<1x1x3xf32>, %w: tensor<0x4x1xf32>) {
  // expected-error@+1 {{'dg.conv' op has input 'tensor<1x1x3xf32>', weight 'tensor<0x4x1xf32>' and 4611686018427387904 groups, expected [n, c, …]}}
  %r = dg.conv %x, %w {groups = 4611686018427387904 : i64}
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<1x1x281474976710656xf32>, %w: tensor<1x1x1xf32>) {
  // expected-error@+1 {{expected at least one, and as many as can be counted: less padding or stride}}
  %r = dg.conv_transpose %x, %w {strides = array<i64: 16777216>}
  dg.return %r
}
