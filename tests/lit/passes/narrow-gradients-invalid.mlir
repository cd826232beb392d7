// Gradients travel in a type of 16 bits.
// RUN: not dg-opt %s --dg-narrow-gradients=precision=f32 2>&1 | FileCheck %s
// RUN: not dg-opt %s --dg-narrow-gradients=precision=f8 2>&1 | FileCheck %s

// CHECK: error: is to sum gradients in '{{f32|f8}}', expected bf16 or f16
dg.graph @train(%x: tensor<4xf32>) typed {
  dg.return %x {names = ["loss"]} : (tensor<4xf32>) -> ()
}
