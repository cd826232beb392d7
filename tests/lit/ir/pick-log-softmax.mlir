// The picked log-probability and the logarithm of the sum have one number for each row, the gradient the type of the
// input; all print as text that parses to the same graph.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<?x5x7xf32>, %y: tensor<?x5xi32>) {
  // CHECK: dg.pick_log_softmax {{.*}} -> (tensor<4x5xf32>, tensor<4x5xf32>)
  %l, %s = dg.pick_log_softmax %x, %y
  // CHECK: dg.pick_log_softmax_grad {{.*}} -> tensor<4x5x7xf32>
  %g = dg.pick_log_softmax_grad %l, %l, %x, %y, %s {overwrites}
  dg.return %g
}
