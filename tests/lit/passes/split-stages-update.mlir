// A gradient of a later stage that an earlier stage's update reads is summed over micro-batches where it is made, and
// travels once, from update to update.
// RUN: dg-opt %s --dg-split-stages=microbatches=4 | FileCheck %s --implicit-check-not=dg.send --implicit-check-not=dg.receive

dg.graph @train(%x: tensor<4x6xf32>) typed {
  %w = dg.parameter "w" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<6xf32>
  %h = dg.mul %x, %w {place = #dg.place<label = "h", origin = 1, stage = 0>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %q = dg.mul %x, %x {place = #dg.place<label = "q", origin = 2, phase = backward, stage = 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %dw = dg.reduce_sum %q {dims = array<i64: 0>, place = #dg.place<label = "dw", origin = 2, phase = backward, stage = 1>} : (tensor<4x6xf32>) -> tensor<6xf32>
  %n = dg.sgd %w, %dw {place = #dg.place<label = "w", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n {param = "w", place = #dg.place<label = "w", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>) -> ()
  dg.return {names = []} : () -> ()
}

// CHECK: dg.graph @train.1.backward(
// CHECK: %[[DW:.+]] = dg.reduce_sum
// CHECK: dg.accumulate %[[DW]] {accumulator = "[[SUM:.+]]", place
// CHECK: dg.graph @train.0.update(
// CHECK: %[[GRADIENT:.+]] = dg.receive {channel = 0 : i64, peer_stage = 1 : i64
// CHECK: dg.sgd %{{.+}}, %[[GRADIENT]]
// CHECK: dg.graph @train.1.update(
// CHECK: %[[ALL:.+]] = dg.accumulated {{.*}}accumulator = "[[SUM]]"
// CHECK: dg.send %[[ALL]] {channel = 0 : i64, peer_stage = 0 : i64
