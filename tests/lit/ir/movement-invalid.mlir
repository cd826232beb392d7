// What an op that moves elements cannot do is an error at the op, which says what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.slice' op slices 'tensor<4x5xf32>' with starts}}
  %y = dg.slice %x {starts = array<i64: 0>, sizes = array<i64: 1, 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.slice' op has step 0 in dimension 1, expected a step above or below 0}}
  %y = dg.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 1, 1>, steps = array<i64: 1, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.slice' op takes 3 elements from 2 by 2 of dimension 1 of 'tensor<4x5xf32>', expected at most 2}}
  %y = dg.slice %x {starts = array<i64: 0, 2>, sizes = array<i64: 1, 3>, steps = array<i64: 1, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.slice' op takes -1 elements from 7 by 1 of dimension 1 of 'tensor<4x5xf32>', expected at most 0}}
  %y = dg.slice %x {starts = array<i64: 0, 7>, sizes = array<i64: 1, -1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.pad_constant' op pads 'tensor<4x5xf32>' with low}}
  %y = dg.pad_constant %x {low = array<i64: 0, -1>, high = array<i64: 0, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %f: tensor<2xf32>) {
  // expected-error@+1 {{'dg.pad_constant' op fills 'tensor<4x5xf32>' with 'tensor<2xf32>', expected one element of the same type}}
  %y = dg.pad_constant %x, %f {low = array<i64: 0, 1>, high = array<i64: 0, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %z: tensor<3x5xf32>) {
  // expected-error@+1 {{'dg.concat' op joins 'tensor<4x5xf32>' and 'tensor<3x5xf32>' along dimension 1, expected equal element types and sizes in all other dimensions}}
  %y = dg.concat %x, %z {dim = 1}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.concat' op joins 'tensor<4x5xf32>' along dimension 2, expected 0 to 1}}
  %y = dg.concat %x {dim = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dg.trilu' op takes a triangle of 'tensor<4xf32>', expected at least two dimensions}}
  %y = dg.trilu %x
  dg.return %y
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'dg.iota' op counts along dimension 1 of 'tensor<4xf32>', expected a dimension of a tensor whose sizes are all numbers}}
  %y = dg.iota {dim = 1, type = tensor<4xf32>}
  dg.return %y
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'dg.eye' op has type 'tensor<4xf32>', expected a matrix whose sizes are numbers}}
  %y = dg.eye {type = tensor<4xf32>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.pad' op has mode "mirror", expected constant, reflect, edge or wrap}}
  %y = dg.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 1>, mode = "mirror"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.pad' op pads 'tensor<4x5xf32>' with low}}
  %y = dg.pad %x {low = array<i64: 0>, high = array<i64: 0, 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %f: tensor<f32>) {
  // expected-error@+1 {{'dg.pad' op fills 'tensor<4x5xf32>' with 'tensor<f32>' in mode "edge", expected one element of the same type in mode "constant"}}
  %y = dg.pad %x, %f {low = array<i64: 0, 1>, high = array<i64: 0, 1>, mode = "edge"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x1xf32>) {
  // expected-error@+1 {{'dg.pad' op pads dimension 1 of 'tensor<4x1xf32>' by 1 and 0 in mode "reflect", expected enough elements to cut and to repeat}}
  %y = dg.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 0>, mode = "reflect"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.tile' op repeats 'tensor<4x5xf32>' by array<i64: 2>, expected 2 numbers, none below 0}}
  %y = dg.tile %x {repeats = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.flip' op has dimensions array<i64: 0, 0> for 'tensor<4x5xf32>', expected different numbers from 0 to 1}}
  %y = dg.flip %x {dims = array<i64: 0, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.roll' op has shifts array<i64: 1, 2> for dimensions array<i64: 0>, expected one shift for each dimension}}
  %y = dg.roll %x {dims = array<i64: 0>, shifts = array<i64: 1, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.roll' op has dimensions array<i64: 2> for 'tensor<4x5xf32>'}}
  %y = dg.roll %x {dims = array<i64: 2>, shifts = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.squeeze' op drops dimension 1 of 'tensor<4x5xf32>', expected one of size 1}}
  %y = dg.squeeze %x {dims = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.squeeze' op has dimensions array<i64: 3>}}
  %y = dg.squeeze %x {dims = array<i64: 3>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.unsqueeze' op has dimensions array<i64: 3> for 'tensor<4x5xf32>', expected different numbers from 0 to 2}}
  %y = dg.unsqueeze %x {dims = array<i64: 3>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.flatten' op flattens 'tensor<4x5xf32>' from dimension 3, expected 0 to 2}}
  %y = dg.flatten %x {dim = 3}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x6x2x2xf32>) {
  // expected-error@+1 {{'dg.depth_to_space' op takes blocks of 2 from 'tensor<1x6x2x2xf32>', expected an image [n, c, h, w] whose channels the square of the block divides}}
  %y = dg.depth_to_space %x {block = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x6x2x3xf32>) {
  // expected-error@+1 {{'dg.space_to_depth' op takes blocks of 2 from 'tensor<1x6x2x3xf32>', expected an image [n, c, h, w] with pixels whose height and width the block divides}}
  %y = dg.space_to_depth %x {block = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.center_crop_pad' op has sizes array<i64: -1> for dimensions array<i64: 0>, expected one size, not below 0, for each dimension}}
  %y = dg.center_crop_pad %x {dims = array<i64: 0>, sizes = array<i64: -1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.center_crop_pad' op has dimensions array<i64: 4>}}
  %y = dg.center_crop_pad %x {dims = array<i64: 4>, sizes = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @dynamic(%x: tensor<?x5xf32>) typed {
  // expected-error@+2 {{'dg.slice' op cuts dimension 0 of 'tensor<?x5xf32>', whose size is not known, expected start 0, size -1 and step 1 there}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: 1, -1>} : (tensor<?x5xf32>) -> tensor<1x5xf32>
  dg.return %y : (tensor<1x5xf32>) -> ()
}

// -----

dg.graph @dynamic(%x: tensor<?x5xf32>) typed {
  // expected-error@+2 {{'dg.pad_constant' op pads dimension 0 of 'tensor<?x5xf32>', whose size is not known, expected 0 there}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.pad_constant %x {low = array<i64: 1, 0>, high = array<i64: 0, 0>} : (tensor<?x5xf32>) -> tensor<?x5xf32>
  dg.return %y : (tensor<?x5xf32>) -> ()
}

// -----

dg.graph @dynamic(%x: tensor<?x5xf32>) typed {
  // expected-error@+2 {{'dg.flip' op rearranges dimension 0 of 'tensor<?x5xf32>', expected one whose size is known}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.flip %x {dims = array<i64: 0>} : (tensor<?x5xf32>) -> tensor<?x5xf32>
  dg.return %y : (tensor<?x5xf32>) -> ()
}

// -----

dg.graph @g(%x: tensor<3xf32>) {
  // expected-error@+1 {{'dg.tile' op repeats 'tensor<3xf32>' by array<i64: 4611686018427387904>, expected sizes that can be counted}}
  %r = dg.tile %x {repeats = array<i64: 4611686018427387904>}
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<3xf32>) {
  // expected-error@+1 {{expected 1 numbers of each, up to 2^48}}
  %r = dg.pad %x {low = array<i64: 4611686018427387904>, high = array<i64: 4611686018427387904>}
  dg.return %r
}

// -----

dg.graph @g(%x: tensor<1x1x0x0xf32>) {
  // expected-error@+1 {{'dg.space_to_depth' op takes blocks of 4294967296 from 'tensor<1x1x0x0xf32>', expected an image [n, c, h, w] with pixels}}
  %r = dg.space_to_depth %x {block = 4294967296 : i64}
  dg.return %r
}
