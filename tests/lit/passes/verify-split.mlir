// Chunks joined by a send and its receive, by a name within a stage, and by an accumulator pass.
// RUN: dg-opt %s --dg-verify-split | FileCheck %s

// CHECK-LABEL: dg.graph @train.1.update(
dg.graph @train.0.forward(%x: tensor<4xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  %h = dg.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  dg.send %h {channel = 0 : i64, peer_stage = 1 : i64} : (tensor<4xf32>) -> ()
  dg.return {names = []} : () -> ()
}
dg.graph @train.1.forward() typed attributes {program = "train", stage = 1 : i64, phase = 1 : i32} {
  %h = dg.receive {channel = 0 : i64, peer_stage = 0 : i64} : () -> tensor<4xf32>
  dg.return %h {names = ["h"]} : (tensor<4xf32>) -> ()
}
dg.graph @train.1.backward(%h: tensor<4xf32>) typed attributes {program = "train", stage = 1 : i64, phase = 2 : i32} {
  dg.accumulate %h {accumulator = "sum"} : (tensor<4xf32>) -> ()
  dg.return {names = []} : () -> ()
}
dg.graph @train.1.update() typed attributes {program = "train", stage = 1 : i64, phase = 3 : i32} {
  %s = dg.accumulated {accumulator = "sum"} : () -> tensor<4xf32>
  dg.return %s {names = ["loss"]} : (tensor<4xf32>) -> ()
}
