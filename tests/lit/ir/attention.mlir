// Attention with groups of heads, masks and windows, and rotated queries, have the types of their queries, and print as
// text that parses to the same graph.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%q: tensor<?x5x8xf32>, %k: tensor<?x7x4xf32>, %mask: tensor<5x7xf32>, %cos: tensor<5x1xf32>, %sin: tensor<5x1xf32>) {
  // CHECK: dg.rotary {{.*}} -> tensor<4x5x8xf32>
  %r = dg.rotary %q, %cos, %sin {heads = 4}
  // CHECK: dg.attention {{.*}} -> tensor<4x5x8xf32>
  %a = dg.attention %r, %k, %k, %mask {heads = 4, kv_heads = 2, scale = 0.5}
  // CHECK: dg.attention {{.*}} -> tensor<4x5x8xf32>
  %w = dg.attention %r, %k, %k {heads = 4, kv_heads = 2, causal, offset = 2, window = 3}
  dg.return %a, %w
}
