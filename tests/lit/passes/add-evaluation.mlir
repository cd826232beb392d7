// @loss is copied to @eval and stays as it was; an @eval of the author's, or a module without @loss, is left alone.
// RUN: dg-opt %s --dg-add-evaluation -split-input-file | FileCheck %s

// CHECK-LABEL: dg.graph @loss(
// CHECK: dg.parameter "w"
// CHECK: dg.mse
// CHECK: dg.return
// CHECK-LABEL: dg.graph @eval(%{{.*}}: tensor<4x3xf32>, %{{.*}}: tensor<4x3xf32>) attributes {input_names = ["x", "y"]}
// CHECK: dg.parameter "w"
// CHECK: dg.mse
// CHECK: dg.return
dg.graph @loss(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) {
  %w = dg.parameter "w" tensor<3xf32> uniform 0.5
  %p = dg.mul %x, %w
  %loss = dg.mse %p, %y
  dg.return %loss
}

// -----

// CHECK: module
// CHECK-COUNT-2: dg.graph
// CHECK-NOT: dg.graph
dg.graph @loss(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %loss = dg.mse %x, %y
  dg.return %loss
}
dg.graph @eval(%x: tensor<4xf32>) {
  %p = dg.relu %x
  dg.return %p
}

// -----

// CHECK: module
// CHECK: dg.graph @forward
// CHECK-NOT: @eval
dg.graph @forward(%x: tensor<4xf32>) {
  %p = dg.relu %x
  dg.return %p
}
