// Products of slices with whole weights, products that are only stacked and sums of products over trips leave a scan as one
// product each, and so does what is the same in each trip. What depends on a state stays.
// RUN: dg-opt %s --dg-hoist-from-scans | FileCheck %s

// CHECK-LABEL: dg.graph @forward(
dg.graph @forward(%h0: tensor<2x3xf32>, %xs: tensor<5x2x4xf32>, %u: tensor<3x4xf32>, %w: tensor<3x3xf32>) typed {
  // CHECK: %[[V:.+]] = dg.sigmoid
  // CHECK: %[[R:.+]] = dg.reshape %{{.+}} {{.*}}shape = array<i64: 10, 4>}
  // CHECK: %[[P:.+]] = dg.matmul %[[R]], %{{.+}} {{.*}}transpose_rhs} : (tensor<10x4xf32>, tensor<3x4xf32>) -> tensor<10x3xf32>
  // CHECK: %[[PS:.+]] = dg.reshape %[[P]] {{.*}}shape = array<i64: 5, 2, 3>}
  // CHECK: %[[S:.+]]:2 = dg.scan carry({{.*}}) over(%{{[a-z0-9]+}} = %[[PS]]) with(%{{[a-z0-9]+}} = %[[V]])
  // CHECK-NEXT: dg.matmul
  // CHECK-NEXT: dg.add
  // CHECK-NEXT: dg.return
  // CHECK: %[[A:.+]] = dg.reshape %[[S]]#1 {{.*}}shape = array<i64: 10, 3>}
  // CHECK: dg.matmul %[[A]], %[[V]] {{.*}} : (tensor<10x3xf32>, tensor<3x3xf32>) -> tensor<10x3xf32>
  %last, %all = dg.scan carry(%h = %h0) over(%x = %xs) with(%a = %u, %b = %w) : (tensor<2x3xf32>, tensor<5x2x4xf32>, tensor<3x4xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<5x2x3xf32>) {
    %v = dg.sigmoid %b : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %p = dg.matmul %x, %a {transpose_rhs} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
    %q = dg.matmul %h, %v : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %n = dg.add %p, %q : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %o = dg.matmul %n, %v : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    dg.return %n, %o : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }
  dg.return %last, %all : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> ()
}

// CHECK-LABEL: dg.graph @sums(
dg.graph @sums(%h0: tensor<2x3xf32>, %xs: tensor<5x2x4xf32>) typed {
  // CHECK: %[[S:.+]]:2 = dg.scan
  // CHECK-NEXT: %[[N:.+]] = dg.tanh
  // CHECK-NEXT: dg.return %[[N]], %[[N]] :
  // CHECK: %[[J:.+]] = dg.reshape %[[S]]#1 {{.*}}shape = array<i64: 10, 3>}
  // CHECK: dg.matmul %[[J]], %{{.+}} {{.*}}transpose_lhs} : (tensor<10x3xf32>, tensor<10x4xf32>) -> tensor<3x4xf32>
  // CHECK: dg.reduce_sum %{{.+}} {dims = array<i64: 0>{{.*}}} : (tensor<10x3xf32>) -> tensor<3xf32>
  %last, %grad, %bias = dg.scan carry(%h = %h0) over(%x = %xs) attributes {num_sums = 2 : i64} : (tensor<2x3xf32>, tensor<5x2x4xf32>) -> (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>) {
    %n = dg.tanh %h : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %g = dg.matmul %n, %x {transpose_lhs} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %b = dg.reduce_sum %n {dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
    dg.return %n, %g, %b : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>) -> ()
  }
  dg.return %last, %grad, %bias : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>) -> ()
}

// A sum of something else stays, and so do the others' ways of computing it.
// CHECK-LABEL: dg.graph @other_sums(
dg.graph @other_sums(%h0: tensor<2x3xf32>, %xs: tensor<5x2x3xf32>) typed {
  // CHECK: dg.scan {{.*}}num_sums = 1
  %last, %sum = dg.scan carry(%h = %h0) over(%x = %xs) attributes {num_sums = 1 : i64} : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %n = dg.add %h, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %s = dg.tanh %n : (tensor<2x3xf32>) -> tensor<2x3xf32>
    dg.return %n, %s : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }
  dg.return %last, %sum : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
}
