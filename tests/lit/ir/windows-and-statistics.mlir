// Pools and norms of any windows and dimensions print as text that parses to the same, before and after their types are
// deduced, and deduce the types that they should.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed

// CHECK-LABEL: dg.graph @pools(
dg.graph @pools(%x: tensor<2x3x9x8xf32>, %line: tensor<2x3x7xf32>, %cube: tensor<2x3x3x4x5xf32>) {
  // CHECK: dg.max_pool {{.*}} -> tensor<2x3x5x4xf32>
  %a = dg.max_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
  // CHECK: dg.max_pool_indices {{.*}} -> tensor<2x3x5x4xi64>
  %i = dg.max_pool_indices %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
  // CHECK: dg.max_pool_grad {{.*}} -> tensor<2x3x9x8xf32>
  %da = dg.max_pool_grad %a, %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
  // The last window reaches past the padding where it starts in front of it, and is left out where it would not.
  // CHECK: dg.avg_pool {{.*}} -> tensor<2x3x4xf32>
  %b = dg.avg_pool %line {kernel = array<i64: 2>, strides = array<i64: 2>, ceil}
  // CHECK: dg.avg_pool {{.*}} -> tensor<2x3x4xf32>
  %c = dg.avg_pool %line {kernel = array<i64: 2>, strides = array<i64: 2>, padding = array<i64: 1, 0>, ceil}
  // CHECK: dg.avg_pool_grad {{.*}} -> tensor<2x3x7xf32>
  %db = dg.avg_pool_grad %b {input_size = array<i64: 7>, kernel = array<i64: 2>, strides = array<i64: 2>, ceil}
  // CHECK: dg.avg_pool {{.*}} -> tensor<2x3x1x4x5xf32>
  %d = dg.avg_pool %cube {kernel = array<i64: 2, 1, 1>, strides = array<i64: 1, 1, 1>, dilation = array<i64: 2, 1, 1>, count_include_pad, sum}
  // CHECK: dg.global_avg_pool {{.*}} -> tensor<2x3x1x1x1xf32>
  %e = dg.global_avg_pool %cube
  // CHECK: dg.global_max_pool {{.*}} -> tensor<2x3x1xf32>
  %f = dg.global_max_pool %line
  dg.return %a, %i, %da, %b, %c, %db, %d, %e, %f
}

// CHECK-LABEL: dg.graph @convolutions(
dg.graph @convolutions(%x: tensor<2x6x9x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>, %line: tensor<2x6x7xf32>, %k: tensor<6x5x3xf32>) {
  // CHECK: %[[Y:.+]] = dg.conv {{.*}}dilation = array<i64>, groups = 2 : i64, {{.*}} -> tensor<2x4x5x8xf32>
  %y = dg.conv %x, %w, %b {groups = 2, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>}
  // CHECK: dg.conv_input_grad %[[Y]], {{.*}} -> tensor<2x6x9x8xf32>
  %dx = dg.conv_input_grad %y, %w {groups = 2, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>, input_size = array<i64: 9, 8>}
  // CHECK: dg.conv_weight_grad %[[Y]], {{.*}} -> tensor<4x3x3x3xf32>
  %dw = dg.conv_weight_grad %y, %x {groups = 2, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>}
  // CHECK: dg.conv_transpose {{.*}} -> tensor<2x5x15xf32>
  %t = dg.conv_transpose %line, %k {strides = array<i64: 2>, padding = array<i64: 0, 1>, output_padding = array<i64: 1>}
  dg.return %dx, %dw, %t
}

// CHECK-LABEL: dg.graph @statistics(
dg.graph @statistics(%x: tensor<4x3x5x5xf32>, %w: tensor<4x1x1x1xf32>, %s: tensor<3x1x1xf32>) {
  // CHECK: dg.moments {{.*}} -> (tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32>)
  %m, %q = dg.moments %x, %w, %s {dims = array<i64: 0, 2, 3>, scale = 0.04}
  // CHECK: dg.rsqrt {{.*}} -> tensor<1x3x1x1xf32>
  %i = dg.rsqrt %q
  // CHECK: dg.normalize {{.*}} -> tensor<4x3x5x5xf32>
  %n = dg.normalize %x, %m, %i, %q
  // CHECK: dg.normalize_sums {{.*}} -> (tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32>)
  %d, %e = dg.normalize_sums %n, %x, %m
  %weight = dg.parameter "bn.weight" tensor<3xf32> constant 1.0
  %bias = dg.parameter "bn.bias" tensor<3xf32> constant 0.0
  %mean = dg.parameter "bn.running_mean" tensor<3xf32> constant 0.0 {state}
  %var = dg.parameter "bn.running_var" tensor<3xf32> constant 1.0 {state}
  // CHECK: dg.batch_norm {{.*}} {epsilon = 1.000000e-05 : f64, momentum = 1.000000e-01 : f64, {{.*}} -> tensor<4x3x5x5xf32>
  %y = dg.batch_norm %x, %weight, %bias, %mean, %var
  // CHECK: dg.mean_variance_norm
  %mv = dg.mean_variance_norm %x {dims = array<i64: 0, 2, 3>}
  // CHECK: dg.group_norm
  %gn = dg.group_norm %x, %weight, %bias {groups = 3}
  // CHECK: dg.instance_norm
  %in = dg.instance_norm %x, %weight, %bias
  %r = dg.parameter "rms.weight" tensor<5x5xf32> constant 1.0
  // CHECK: dg.rms_norm
  %rn = dg.rms_norm %x, %r
  // CHECK: dg.lrn
  %ln = dg.lrn %x {size = 5}
  dg.return %n, %d, %e, %y, %mv, %gn, %in, %rn, %ln
}

// CHECK-LABEL: dg.graph @norms_of_windows(
dg.graph @norms_of_windows(%x: tensor<4x3x5x5xf32>, %w: tensor<3x5x5xf32>) {
  // CHECK: dg.lp_pool {{.*}}p = 3 : i64{{.*}} -> tensor<4x3x2x2xf32>
  %p = dg.lp_pool %x {kernel = array<i64: 2, 2>, p = 3}
  // CHECK: dg.layer_norm {{.*}}axis = 1 : i64{{.*}} -> tensor<4x3x5x5xf32>
  %n = dg.layer_norm %x, %w, %w {axis = 1}
  dg.return %p, %n
}
