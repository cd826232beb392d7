// Without @forward and without a loss op there is nothing to infer.
// REQUIRES: dgc
// RUN: not dgc %s --infer --batch 4 --emit dg 2>&1 | FileCheck %s

// CHECK: derive-forward-invalid.mlir:9:3: error: 'dg.return' op returns a loss without an op for losses: inference returns what such an op, as dg.mse, compares with its target
dg.graph @loss(%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) {
  %w = dg.parameter "w" tensor<2x3xf32> uniform 0.5
  %p = dg.linear %x, %w
  dg.return %p
}
