// What the forward pass made is made again just before the backward pass needs it, where that lowers the peak; a collective does not run twice, and nothing does
// where nothing is asked for.
// RUN: dg-opt %s --dg-rematerialize=saved=1024 | FileCheck %s
// RUN: dg-opt %s --dg-rematerialize=saved=1048576 | FileCheck %s --check-prefix=ALL --implicit-check-not=dg.all_reduce
// RUN: dg-opt %s --dg-rematerialize | FileCheck %s --check-prefix=NONE --implicit-check-not=dg.matmul

// CHECK-LABEL: dg.graph @train(
// ALL-LABEL: dg.graph @train(
// NONE-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<16x16xf32>) typed {
  %w = dg.parameter "w" tensor<16x16xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<16x16xf32>
  // ALL: dg.all_reduce
  %r = dg.all_reduce %x {axis = "data", place = #dg.place<label = "r", origin = 1, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[P:.*]] = dg.matmul
  // CHECK: dg.scale %[[P]]
  // NONE: dg.matmul
  %p = dg.matmul %x, %w {place = #dg.place<label = "p", origin = 1, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = dg.scale %p {factor = 0.5, place = #dg.place<label = "s", origin = 2, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %t = dg.tanh %s {place = #dg.place<label = "t", origin = 3, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %u = dg.exp %t {place = #dg.place<label = "u", origin = 4, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %g = dg.sub %u, %r {place = #dg.place<label = "g", origin = 4, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[H:.*]] = dg.mul {{.*}}label = "h"
  %h = dg.mul %g, %t {place = #dg.place<label = "h", origin = 3, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK-NEXT: %[[AGAIN:.*]] = dg.matmul {{.*}}label = "p", origin = 1, phase = backward
  // CHECK-NEXT: dg.mul %[[H]], %[[AGAIN]]
  %i = dg.mul %h, %p {place = #dg.place<label = "i", origin = 1, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // ALL: dg.update
  // NONE: dg.update
  dg.update %i {param = "w", place = #dg.place<origin = 1, phase = update, stage = 0>} : (tensor<16x16xf32>) -> ()
  dg.return {names = [], place = #dg.place<>} : () -> ()
}
