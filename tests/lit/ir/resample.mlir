// Ops that are sparse matrices of constants have the types that follow from their attributes, print as text that parses
// to the same graph, and decompose into one matrix for each dimension that changes.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-decompose | FileCheck %s --check-prefix=PARTS

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<?x3x4x4xf32>, %p: tensor<?x12x9xf32>) {
  // CHECK: dg.resample {{.*}} -> tensor<4x3x2x4xf32>
  %m = dg.resample %x {dim = 2, offsets = array<i64: 0, 2, 3>, places = array<i64: 0, 1, 3>, weights = array<f64: 0.5, 0.5, 1.0>}
  // CHECK: dg.resize {{.*}} -> tensor<4x3x8x4xf32>
  // PARTS: dg.resample {{.*}}dim = 2
  // PARTS: dg.resample {{.*}}dim = 2
  // PARTS-NOT: dim = 3
  %r = dg.resize %x {sizes = array<i64: -1, -1, 8, 4>, mode = "linear"}
  // CHECK: dg.col2im {{.*}} -> tensor<4x3x4x4xf32>
  // PARTS: dg.transpose
  // PARTS: dg.resample {{.*}}dim = 2
  // PARTS: dg.resample {{.*}}dim = 3
  %i = dg.col2im %p {image = array<i64: 4, 4>, kernel = array<i64: 2, 2>}
  dg.return %m, %r, %i
}
