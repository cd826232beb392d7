// A step of training as the passes before make it passes, with state, a frozen parameter and an evaluation.
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-number-ops --dg-add-evaluation --dg-weigh-samples --dg-training-forms --dg-decompose --dg-differentiate --dg-add-optimizer=optimizer=sgd:lr=0.1,momentum=0.9 --dg-verify-training | FileCheck %s

// CHECK-LABEL: dg.graph @train(
// CHECK-DAG: dg.update {{.*}}param = "w"
// CHECK-DAG: dg.update {{.*}}param = "w.momentum"
// CHECK-NOT: dg.update {{.*}}param = "f"
// CHECK: dg.graph @eval(
dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?x3xf32>) {
  %w = dg.parameter "w" tensor<3x6xf32> uniform 0.5
  %f = dg.parameter "f" tensor<3xf32> uniform 0.5 {frozen}
  %p = dg.linear %x, %w, %f
  %loss = dg.mse %p, %y
  dg.return %loss
}
