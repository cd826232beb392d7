// A model that has only @loss infers what its loss compares with the target: the loss and the target's input go.
// REQUIRES: dgc
// RUN: dgc %s --infer --batch 4 --emit dg | FileCheck %s

// CHECK: dg.graph @infer.0.forward(%{{.*}}: tensor<4x3xf32>) typed attributes {input_names = ["x"]
// CHECK: dg.matmul
// CHECK-NOT: dg.{{sub|mul |reduce_sum}}
// CHECK: dg.return {{.*}}names = ["p"]
dg.graph @loss(%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) {
  %w = dg.parameter "w" tensor<2x3xf32> uniform 0.5
  %p = dg.linear %x, %w
  %loss = dg.mse %p, %y
  dg.return %loss
}
