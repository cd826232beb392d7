// What is whole on both tensor ranks crosses between nodes in halves, once for each stage and phase that reads it, and
// is gathered there; what is cut or a sum already, small, or read on its own stage or by an update is left as it is.
// RUN: dg-opt %s --dg-set-mesh="tensor=2 pipe=2" --dg-slice-sends="cluster=a100x8:nodes=2,devices=2" | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh="tensor=2 pipe=2" --dg-slice-sends="cluster=a100x8:nodes=2,devices=2" --dg-split-stages=microbatches=2 --dg-verify-split | FileCheck %s --check-prefix=SPLIT
// RUN: dg-opt %s --dg-set-mesh="tensor=2 pipe=2" --dg-slice-sends="cluster=a100x8:nodes=1" | FileCheck %s --check-prefix=NEAR

// Inside a node a gather costs what it saves.
// NEAR-NOT: dg.all_gather

// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<4096x4096xf32>) typed {
  %w = dg.parameter "w" tensor<4096xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0, shardings = <[""], []>>} : tensor<4096xf32>
  // CHECK: %[[R:.+]] = dg.relu
  // CHECK-NEXT: %[[HALF:.+]] = dg.slice_shard %[[R]] {axis = "tensor", dim = 0 : i64, place = #dg.place<label = "r", origin = 1, stage = 0>} : (tensor<4096x4096xf32>) -> tensor<2048x4096xf32>
  // CHECK-NEXT: %[[THERE:.+]] = dg.all_gather %[[HALF]] {axis = "tensor", dim = 0 : i64, place = #dg.place<label = "r", origin = 1, stage = 1>} : (tensor<2048x4096xf32>) -> tensor<4096x4096xf32>
  %r = dg.relu %x {place = #dg.place<label = "r", origin = 1, stage = 0, shardings = <["", ""], []>, <["", ""], []>>} : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  // CHECK-NEXT: dg.neg %[[R]]
  %here = dg.neg %r {place = #dg.place<origin = 1, stage = 0, shardings = <["", ""], []>, <["", ""], []>>} : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  // CHECK-NEXT: %[[CUT:.+]] = dg.slice_shard {{.*}}stage = 0
  // CHECK-NEXT: dg.gelu %[[CUT]]
  %cut = dg.slice_shard %r {axis = "tensor", dim = 1 : i64, place = #dg.place<origin = 2, stage = 0>} : (tensor<4096x4096xf32>) -> tensor<4096x2048xf32>
  %c = dg.gelu %cut {place = #dg.place<origin = 2, stage = 1, shardings = <["", "tensor"], []>, <["", "tensor"], []>>} : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  // CHECK-NEXT: %[[SUM:.+]] = dg.reduce_sum %[[THERE]]
  %s = dg.reduce_sum %r {dims = array<i64: 0, 1>, place = #dg.place<label = "s", origin = 3, stage = 1, shardings = <["", ""], []>, <[], []>>} : (tensor<4096x4096xf32>) -> tensor<f32>
  // CHECK-NEXT: %[[G:.+]] = dg.mul %[[THERE]], %[[SUM]]
  // CHECK-NEXT: %[[PART:.+]] = dg.slice_shard %[[G]] {{.*}}phase = backward, stage = 1>
  // CHECK-NEXT: %[[BACK:.+]] = dg.all_gather %[[PART]] {{.*}}phase = backward, stage = 0>
  // CHECK-NEXT: dg.mul %[[BACK]], %[[R]]
  %g = dg.mul %r, %s {place = #dg.place<label = "g", origin = 3, phase = backward, stage = 1, shardings = <["", ""], []>, <[], []>, <["", ""], []>>} : (tensor<4096x4096xf32>, tensor<f32>) -> tensor<4096x4096xf32>
  %d = dg.mul %g, %r {place = #dg.place<label = "d", origin = 1, phase = backward, stage = 0, shardings = <["", ""], []>, <["", ""], []>, <["", ""], []>>} : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  // CHECK-NEXT: %[[DW:.+]] = dg.reduce_sum
  // CHECK-NEXT: dg.neg %[[DW]]
  %dw = dg.reduce_sum %d {dims = array<i64: 0>, place = #dg.place<label = "dw", origin = 1, phase = backward, stage = 0, shardings = <["", ""], []>, <[""], []>>} : (tensor<4096x4096xf32>) -> tensor<4096xf32>
  %u = dg.neg %dw {place = #dg.place<label = "w", origin = 0, phase = update, stage = 1, shardings = <[""], []>, <[""], []>>} : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK-NOT: slice_shard
  // CHECK: dg.return
  dg.return %s, %u {names = ["loss", "u"], place = #dg.place<shardings = <[], []>, <[""], []>>} : (tensor<f32>, tensor<4096xf32>) -> ()
}

// SPLIT-NOT: dg.send {{.*}} : (tensor<4096x4096xf32>)
// SPLIT: dg.send {{.*}} : (tensor<2048x4096xf32>)
// SPLIT-NOT: dg.send {{.*}} : (tensor<4096x4096xf32>)
