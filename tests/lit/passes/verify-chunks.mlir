// A chunk of a fused chain passes.
// RUN: dg-opt %s --dg-fuse-elementwise --dg-verify-chunks | FileCheck %s

// CHECK: dg.fused
dg.graph @infer.0.forward(%x: tensor<4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  %h = dg.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = dg.neg %h : (tensor<4xf32>) -> tensor<4xf32>
  dg.return %y {names = ["y"]} : (tensor<4xf32>) -> ()
}
