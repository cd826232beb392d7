// Weights that every trip multiplies are packed in front of the scan, padded to panels of 32 columns, and handed in instead.
// A scan of few trips, a product with a state on the right, and one that turns its left factor stay as they are.
// RUN: dg-opt %s --dg-pack-scan-weights | FileCheck %s

// CHECK-LABEL: dg.graph @packed(
dg.graph @packed(%h0: tensor<2x3xf32>, %xs: tensor<5x2x64xf32>, %u: tensor<64x3xf32>, %w: tensor<64x3xf32>) typed {
  // CHECK: %[[R:.+]] = dg.reshape %{{.+}} {{.*}}shape = array<i64: 2, 32, 3>} : (tensor<64x3xf32>) -> tensor<2x32x3xf32>
  // CHECK: %[[T:.+]] = dg.transpose %[[R]] {permutation = array<i64: 0, 2, 1>{{.*}}} : (tensor<2x32x3xf32>) -> tensor<2x3x32xf32>
  // CHECK: %[[P:.+]] = dg.pad_constant %{{.+}} {high = array<i64: 0, 29>, low = array<i64: 0, 0>{{.*}}} : (tensor<64x3xf32>) -> tensor<64x32xf32>
  // CHECK: %[[C:.+]] = dg.reshape %[[P]] {{.*}}shape = array<i64: 64, 1, 32>}
  // CHECK: %[[D:.+]] = dg.transpose %[[C]] {permutation = array<i64: 1, 0, 2>{{.*}}} : (tensor<64x1x32xf32>) -> tensor<1x64x32xf32>
  // CHECK: dg.scan carry({{.*}}) over({{.*}}) with(%[[A:[a-z0-9]+]] = %[[T]], %[[B:[a-z0-9]+]] = %[[D]])
  // CHECK-NEXT: %[[F:.+]] = dg.panel_product %{{.+}}, %[[A]] {columns = 64 : i64} : (tensor<2x3xf32>, tensor<2x3x32xf32>) -> tensor<2x64xf32>
  // CHECK-NEXT: %[[S:.+]] = dg.add %[[F]]
  // CHECK-NEXT: dg.panel_product %[[S]], %[[B]] {columns = 3 : i64}
  %last = dg.scan carry(%h = %h0) over(%x = %xs) with(%a = %u, %b = %w) : (tensor<2x3xf32>, tensor<5x2x64xf32>, tensor<64x3xf32>, tensor<64x3xf32>) -> tensor<2x3xf32> {
    %p = dg.matmul %h, %a {transpose_rhs} : (tensor<2x3xf32>, tensor<64x3xf32>) -> tensor<2x64xf32>
    %s = dg.add %p, %x : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
    %n = dg.matmul %s, %b : (tensor<2x64xf32>, tensor<64x3xf32>) -> tensor<2x3xf32>
    dg.return %n : (tensor<2x3xf32>) -> ()
  }
  dg.return %last : (tensor<2x3xf32>) -> ()
}

// CHECK-LABEL: dg.graph @left(
// CHECK-NOT: dg.panel_product
dg.graph @left(%h0: tensor<3x3xf32>, %xs: tensor<3x3x3xf32>, %ys: tensor<5x3x3xf32>, %w: tensor<3x3xf32>) typed {
  %few = dg.scan carry(%h = %h0) over(%x = %xs) with(%b = %w) : (tensor<3x3xf32>, tensor<3x3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32> {
    %n = dg.matmul %h, %b : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    dg.return %n : (tensor<3x3xf32>) -> ()
  }
  %others = dg.scan carry(%h = %h0) over(%y = %ys) with(%b = %w) : (tensor<3x3xf32>, tensor<5x3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32> {
    %m = dg.matmul %b, %h : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %n = dg.matmul %m, %b {transpose_lhs} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    dg.return %n : (tensor<3x3xf32>) -> ()
  }
  dg.return %few, %others : (tensor<3x3xf32>, tensor<3x3xf32>) -> ()
}
