// Every value gets its type from the inputs and parameters alone: "?" takes the size of the batch, in every graph, and
// no type is left to deduce.
// RUN: dg-opt %s --dg-deduce-types=batch=8 | FileCheck %s --implicit-check-not='?' --implicit-check-not='!dg.any'
// RUN: dg-opt %s --dg-deduce-types=batch=8 | dg-opt --dg-deduce-types | FileCheck %s

// CHECK-LABEL: dg.graph @loss(%{{.*}}: tensor<8x1x12x12xf32>, %{{.*}}: tensor<8xi32>) typed attributes {input_names = ["x", "y"]}
dg.graph @loss(%x: tensor<?x1x12x12xf32>, %y: tensor<?xi32>) {
  // CHECK: dg.parameter "k" tensor<4x1x5x5xf32> {{.*}} : tensor<4x1x5x5xf32>
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.2
  %w = dg.parameter "w" tensor<10x64xf32> uniform 0.2
  %b = dg.parameter "b" tensor<10xf32> uniform 0.2
  // CHECK: dg.conv2d {{.*}} -> tensor<8x4x8x8xf32>
  %conv = dg.conv2d %x, %k
  // CHECK: dg.max_pool2d {{.*}} -> tensor<8x4x4x4xf32>
  %pool = dg.max_pool2d %conv {kernel = array<i64: 2, 2>}
  // CHECK: dg.reshape {{.*}}shape = array<i64: 0, -1>{{.*}} -> tensor<8x64xf32>
  %flat = dg.reshape %pool {shape = array<i64: 0, -1>}
  // CHECK: dg.linear {{.*}} -> tensor<8x10xf32>
  %fc = dg.linear %flat, %w, %b
  // CHECK: dg.cross_entropy {{.*}} -> tensor<f32>
  %loss = dg.cross_entropy %fc, %y
  // CHECK: dg.return {{.*}} : (tensor<f32>) -> ()
  dg.return %loss
}

// Broadcasting, transposed products, embeddings, several results, strides and padding, f64.
// CHECK-LABEL: dg.graph @forward(
dg.graph @forward(%x: tensor<?x6xf64>, %tokens: tensor<?x5xi64>, %image: tensor<?x2x7x9xf64>) {
  %t = dg.parameter "table" tensor<11x6xf64> normal 0.02
  %k = dg.parameter "k" tensor<3x2x3x3xf64> normal 0.02
  %g = dg.parameter "g" tensor<6xf64> constant 1.0
  // CHECK: dg.embedding {{.*}} -> tensor<8x5x6xf64>
  %e = dg.embedding %t, %tokens
  // CHECK: dg.matmul {{.*}} {{.*}}transpose_lhs{{.*}} -> tensor<8x6x6xf64>
  %m = dg.matmul %e, %e {transpose_lhs}
  // CHECK: dg.add {{.*}} : (tensor<8x6x6xf64>, tensor<8x1x6xf64>) -> tensor<8x6x6xf64>
  %r = dg.reshape %x {shape = array<i64: 0, 1, 6>}
  %a = dg.add %m, %r
  // CHECK: dg.reduce_sum {{.*}} -> tensor<8x1x6xf64>
  %s = dg.reduce_sum %a {dims = array<i64: 1>, keep}
  // CHECK: dg.layer_norm_grad {{.*}} -> (tensor<8x1x6xf64>, tensor<6xf64>, tensor<6xf64>)
  %dx, %dw, %db = dg.layer_norm_grad %s, %s, %g
  // CHECK: dg.conv2d {{.*}} -> tensor<8x3x4x5xf64>
  %c = dg.conv2d %image, %k {strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}
  dg.return %dx, %dw, %db, %c
}
