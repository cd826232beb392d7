// Reads and writes at places given by integers have the types of ONNX's ops, and print as text that parses to the same
// graph.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<?x6x8xf32>, %i: tensor<2x3xi64>, %e: tensor<?x2x8xi32>, %r: tensor<?x3x1xi64>, %u: tensor<?x3x8xf32>,
                  %lengths: tensor<6xi64>) {
  // CHECK: dg.gather {{.*}} {dim = 1 : i64, {{.*}} -> tensor<4x2x3x8xf32>
  %gather = dg.gather %x, %i {dim = 1}
  // CHECK: dg.gather_grad {{.*}} -> tensor<4x6x8xf32>
  %gather_grad = dg.gather_grad %gather, %i {dim = 1, size = 6}
  // CHECK: dg.gather_elements {{.*}} -> tensor<4x2x8xf32>
  %gather_elements = dg.gather_elements %x, %e {dim = 1}
  // CHECK: dg.scatter_elements {{.*}} -> tensor<4x6x8xf32>
  %scatter_elements = dg.scatter_elements %x, %e, %gather_elements {dim = 1, reduction = "max"}
  // CHECK: dg.gather_nd {{.*}} -> tensor<4x3x8xf32>
  %gather_nd = dg.gather_nd %x, %r {batch_dims = 1}
  // CHECK: dg.scatter_nd {{.*}} -> tensor<4x6x8xf32>
  %scatter_nd = dg.scatter_nd %x, %r, %u {batch_dims = 1}
  // CHECK: dg.one_hot {{.*}} -> tensor<2x5x3xi1>
  %one_hot = dg.one_hot %i {depth = 5, dim = 1, type = i1}
  // CHECK: dg.reverse_sequence {{.*}} -> tensor<4x6x8xf32>
  %reverse = dg.reverse_sequence %x, %lengths
  dg.return %gather_grad, %scatter_elements, %gather_nd, %scatter_nd, %one_hot, %reverse
}
