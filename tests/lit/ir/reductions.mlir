// Reductions, ops along one dimension and einsum read and print in the same form, and their types are deduced.
// RUN: dg-opt %s | FileCheck %s
// RUN: dg-opt %s --dg-deduce-types | FileCheck %s --check-prefix=TYPED

// CHECK-LABEL: dg.graph @reductions
// TYPED-LABEL: dg.graph @reductions
dg.graph @reductions(%x: tensor<4x6xf32>) {
  // CHECK: dg.reduce_max %
  // TYPED: dg.reduce_max {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r0 = dg.reduce_max %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_min %
  // TYPED: dg.reduce_min {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r1 = dg.reduce_min %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_prod %
  // TYPED: dg.reduce_prod {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r2 = dg.reduce_prod %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_mean %
  // TYPED: dg.reduce_mean {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r3 = dg.reduce_mean %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_l1 %
  // TYPED: dg.reduce_l1 {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r4 = dg.reduce_l1 %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_l2 %
  // TYPED: dg.reduce_l2 {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r5 = dg.reduce_l2 %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_sum_square %
  // TYPED: dg.reduce_sum_square {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r6 = dg.reduce_sum_square %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_log_sum %
  // TYPED: dg.reduce_log_sum {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r7 = dg.reduce_log_sum %x {dims = array<i64: 1>, keep}
  // CHECK: dg.reduce_log_sum_exp %
  // TYPED: dg.reduce_log_sum_exp {{.*}} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r8 = dg.reduce_log_sum_exp %x {dims = array<i64: 1>, keep}
  dg.return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8
}

// CHECK-LABEL: dg.graph @order
// TYPED-LABEL: dg.graph @order
dg.graph @order(%x: tensor<4x6xf32>) {
  // CHECK: dg.arg_max %
  // TYPED: dg.arg_max {{.*}} -> tensor<6xi64>
  %a = dg.arg_max %x {axis = 0}
  // CHECK: dg.arg_min %{{.*}}keep
  // TYPED: dg.arg_min {{.*}} -> tensor<4x1xi64>
  %b = dg.arg_min %x {keep, last}
  // CHECK: dg.cumsum %{{.*}}exclusive
  // TYPED: dg.cumsum {{.*}} -> tensor<4x6xf32>
  %c = dg.cumsum %x {exclusive}
  // CHECK: dg.top_k %{{.*}}k = 3
  // TYPED: dg.top_k {{.*}} -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %v, %i = dg.top_k %c {k = 3}
  // CHECK: dg.top_k_grad %
  // TYPED: dg.top_k_grad {{.*}} -> tensor<4x6xf32>
  %g = dg.top_k_grad %v, %i {size = 6}
  // CHECK: dg.sort %
  // TYPED: dg.sort {{.*}} -> (tensor<4x6xf32>, tensor<4x6xi64>)
  %s, %j = dg.sort %g {axis = 0, descending}
  // CHECK: dg.hardmax %
  // TYPED: dg.hardmax {{.*}} -> tensor<4x6xf32>
  %h = dg.hardmax %s
  // CHECK: dg.softmax %{{.*}}axis = 0
  %p = dg.softmax %h {axis = 0}
  // CHECK: dg.einsum %{{.*}}equation = "ij,ik->jk"
  // TYPED: dg.einsum {{.*}} -> tensor<6x6xf32>
  %e = dg.einsum %p, %x {equation = "ij,ik->jk"}
  // TYPED: dg.matmul {{.*}} : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %w = dg.reduce_sum %x {dims = array<i64: 0>}
  %m = dg.matmul %e, %w
  dg.return %a, %b, %m, %j
}
