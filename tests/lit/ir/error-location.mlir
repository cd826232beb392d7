// An error names file, line and column of the guilty op in the text that the author wrote, and shows the line.
// RUN: not dg-opt %s --dg-deduce-types 2>&1 | FileCheck %s

dg.graph @loss(%x: tensor<64x10xf32>, %y: tensor<64x1xf32>) {
  %w1 = dg.parameter "fc1.weight" tensor<20x10xf32> uniform 0.3
  %w2 = dg.parameter "fc2.weight" tensor<1x30xf32> uniform 0.3
  %fc1 = dg.linear %x, %w1
  %h = dg.relu %fc1
  // CHECK: error-location.mlir:[[@LINE+3]]:10: error: 'dg.linear' op contracts 20 of input 'tensor<64x20xf32>' with 30 of weight 'tensor<1x30xf32>', expected equal sizes
  // CHECK-NEXT: %fc2 = dg.linear %h, %w2
  // CHECK-NEXT: ^
  %fc2 = dg.linear %h, %w2
  %loss = dg.mse %fc2, %y
  dg.return %loss
}
