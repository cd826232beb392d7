// What the search decided to make again is made again, whatever the peak; the attribute goes, and a collective that has it does not run twice.
// RUN: dg-opt %s --dg-rematerialize | FileCheck %s --implicit-check-not=dg.all_reduce --implicit-check-not=dg.recompute

// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<16x16xf32>) typed {
  %w = dg.parameter "w" tensor<16x16xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<16x16xf32>
  // CHECK: dg.all_reduce
  %r = dg.all_reduce %x {axis = "data", dg.recompute, place = #dg.place<label = "r", origin = 1, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %p = dg.matmul %x, %w {dg.recompute, place = #dg.place<label = "p", origin = 1, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[T:.*]] = dg.tanh
  %t = dg.tanh %p {place = #dg.place<label = "t", origin = 3, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: %[[G:.*]] = dg.sub %[[T]]
  %g = dg.sub %t, %r {place = #dg.place<label = "g", origin = 4, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK-NEXT: %[[AGAIN:.*]] = dg.matmul {{.*}}label = "p", origin = 1, phase = backward
  // CHECK-NEXT: dg.mul %[[G]], %[[AGAIN]]
  %i = dg.mul %g, %p {place = #dg.place<label = "i", origin = 1, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  dg.update %i {param = "w", place = #dg.place<origin = 1, phase = update, stage = 0>} : (tensor<16x16xf32>) -> ()
  dg.return {names = [], place = #dg.place<>} : () -> ()
}
