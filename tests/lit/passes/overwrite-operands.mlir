// The gradient of a softmax with cross-entropy takes the place of its input where that was computed and nobody reads it
// afterwards, be it in the same chunk or made by an earlier one; not where it is an input of the job (x) or read later
// (b). A reshape is the same memory.
// RUN: dg-opt %s --dg-split-stages=microbatches=1 --dg-overwrite-operands | FileCheck %s

// CHECK-LABEL: dg.graph @train.0.backward(
// CHECK: dg.pick_log_softmax_grad {{.*}}{overwrites, place = #dg.place<label = "da"
// CHECK-NOT: overwrites
// CHECK: dg.pick_log_softmax_grad {{.*}}{place = #dg.place<label = "db"
// CHECK: dg.pick_log_softmax_grad {{.*}}{place = #dg.place<label = "dx"
// CHECK: dg.pick_log_softmax_grad {{.*}}{overwrites, place = #dg.place<label = "dc"
dg.graph @train(%x: tensor<4x6xf32>, %y: tensor<4xi32>) typed {
  %w = dg.parameter "w" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<6xf32>
  %a0 = dg.mul %x, %w {place = #dg.place<label = "a", origin = 1, stage = 0>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %a1 = dg.reshape %a0 {shape = array<i64: 24>, place = #dg.place<origin = 1, stage = 0>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %a = dg.reshape %a1 {shape = array<i64: 4, 6>, place = #dg.place<origin = 1, stage = 0>} : (tensor<24xf32>) -> tensor<4x6xf32>
  %b = dg.add %x, %w {place = #dg.place<label = "b", origin = 2, stage = 0>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %p, %s = dg.pick_log_softmax %a, %y {place = #dg.place<label = "p", origin = 3, stage = 0>} : (tensor<4x6xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dg.reduce_sum %p {dims = array<i64: 0>, place = #dg.place<label = "loss", origin = 4, stage = 0>} : (tensor<4xf32>) -> tensor<f32>
  %da = dg.pick_log_softmax_grad %p, %p, %a, %y, %s {place = #dg.place<label = "da", origin = 3, phase = backward, stage = 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x6xf32>
  %db = dg.pick_log_softmax_grad %p, %p, %b, %y, %s {place = #dg.place<label = "db", origin = 3, phase = backward, stage = 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x6xf32>
  %dx = dg.pick_log_softmax_grad %p, %p, %x, %y, %s {place = #dg.place<label = "dx", origin = 3, phase = backward, stage = 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x6xf32>
  %ab = dg.mul %da, %b {place = #dg.place<origin = 3, phase = backward, stage = 0>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %abd = dg.mul %ab, %db {place = #dg.place<origin = 3, phase = backward, stage = 0>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = dg.mul %abd, %dx {place = #dg.place<origin = 3, phase = backward, stage = 0>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %dc = dg.pick_log_softmax_grad %p, %p, %c, %y, %s {place = #dg.place<label = "dc", origin = 3, phase = backward, stage = 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x6xf32>
  %dw = dg.reduce_sum %dc {dims = array<i64: 0>, place = #dg.place<label = "dw", origin = 3, phase = backward, stage = 0>} : (tensor<4x6xf32>) -> tensor<6xf32>
  %n = dg.sgd %w, %dw {place = #dg.place<label = "w", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n {param = "w", place = #dg.place<label = "w", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>) -> ()
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}
