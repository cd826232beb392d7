// Ops that move elements have the types that follow from their attributes, keep a `?` that they do not touch, and print
// as text that parses to the same graph.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<?x6x8xf32>, %m: tensor<?x4x6x6xf32>, %fill: tensor<f32>) {
  // CHECK: dg.slice {{.*}} -> tensor<4x3x8xf32>
  %slice = dg.slice %x {starts = array<i64: 0, 5, 0>, sizes = array<i64: -1, -1, -1>, steps = array<i64: 1, -2, 1>}
  // CHECK: dg.slice {{.*}} -> tensor<4x2x8xf32>
  %part = dg.slice %x {starts = array<i64: 0, 1, 0>, sizes = array<i64: -1, 2, -1>}
  // CHECK: dg.pad_constant {{.*}} -> tensor<4x7x17xf32>
  %border = dg.pad_constant %x, %fill {low = array<i64: 0, 1, 2>, high = array<i64: 0, 0, 0>, interior = array<i64: 0, 0, 1>}
  // CHECK: dg.concat {{.*}} -> tensor<4x11x8xf32>
  %concat = dg.concat %slice, %part, %x {dim = 1}
  // CHECK: dg.trilu {{.*}} -> tensor<4x6x8xf32>
  %trilu = dg.trilu %x {upper, diagonal = 1}
  // CHECK: dg.iota {{.*}} : () -> tensor<2x5xi64>
  %iota = dg.iota {dim = 1, type = tensor<2x5xi64>}
  // CHECK: dg.eye {{.*}} : () -> tensor<3x3xf32>
  %eye = dg.eye {type = tensor<3x3xf32>}
  // CHECK: dg.pad {{.*}} -> tensor<4x9x7xf32>
  %pad = dg.pad %x {low = array<i64: 0, 1, -1>, high = array<i64: 0, 2, 0>, mode = "reflect"}
  // CHECK: dg.tile {{.*}} -> tensor<4x12x24xf32>
  %tile = dg.tile %x {repeats = array<i64: 1, 2, 3>}
  // CHECK: dg.flip {{.*}} -> tensor<4x6x8xf32>
  %flip = dg.flip %x {dims = array<i64: 2>}
  // CHECK: dg.roll {{.*}} -> tensor<4x6x8xf32>
  %roll = dg.roll %x {dims = array<i64: 1>, shifts = array<i64: -1>}
  // CHECK: dg.unsqueeze {{.*}} -> tensor<4x1x6x8x1xf32>
  %unsqueeze = dg.unsqueeze %x {dims = array<i64: 1, 4>}
  // CHECK: dg.squeeze {{.*}} -> tensor<4x6x8xf32>
  %squeeze = dg.squeeze %unsqueeze {dims = array<i64: 1, 4>}
  // CHECK: dg.flatten {{.*}} -> tensor<4x48xf32>
  %flatten = dg.flatten %x
  // CHECK: dg.depth_to_space {{.*}} -> tensor<4x1x12x12xf32>
  %space = dg.depth_to_space %m {block = 2, channels_major}
  // CHECK: dg.space_to_depth {{.*}} -> tensor<4x16x3x3xf32>
  %depth = dg.space_to_depth %m {block = 2}
  // CHECK: dg.center_crop_pad {{.*}} -> tensor<4x4x9x3xf32>
  %center = dg.center_crop_pad %m {dims = array<i64: 2, 3>, sizes = array<i64: 9, 3>}
  dg.return %slice, %part, %border, %concat, %trilu, %iota, %eye, %pad, %tile, %flip, %roll, %squeeze, %flatten, %space, %depth, %center
}
