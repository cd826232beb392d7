// Composite ops become their parts, which keep the label of the whole; primitive ops stay.
// RUN: dg-opt %s --dg-decompose | FileCheck %s --implicit-check-not=dg.linear --implicit-check-not=dg.attention

// CHECK-LABEL: dg.graph @layers(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x3xf32>
dg.graph @layers(%x: tensor<4x3xf32>, %t: tensor<2x5x3xf32>, %w: tensor<7x3xf32>, %b: tensor<7xf32>) typed {
  // CHECK: %[[P:.+]] = dg.matmul %[[X]], %[[W:.+]] {place = #dg.place<label = "fc">, transpose_rhs}
  // CHECK: dg.add %[[P]], %[[B:.+]] {place = #dg.place<label = "fc">}
  %fc = dg.linear %x, %w, %b : (tensor<4x3xf32>, tensor<7x3xf32>, tensor<7xf32>) -> tensor<4x7xf32>
  // Without a bias nothing is added; leading dimensions are rows.
  // CHECK: %[[ROWS:.+]] = dg.reshape {{.*}}shape = array<i64: 10, 3>
  // CHECK: %[[P:.+]] = dg.matmul %[[ROWS]], %[[W]]
  // CHECK-NOT: dg.add
  // CHECK: dg.reshape %[[P]] {{.*}}shape = array<i64: 2, 5, 7>
  %tokens = dg.linear %t, %w : (tensor<2x5x3xf32>, tensor<7x3xf32>) -> tensor<2x5x7xf32>
  // CHECK: dg.relu
  %r = dg.relu %fc : (tensor<4x7xf32>) -> tensor<4x7xf32>
  dg.return %r, %tokens : (tensor<4x7xf32>, tensor<2x5x7xf32>) -> ()
}

// CHECK-LABEL: dg.graph @convolution(
dg.graph @convolution(%x: tensor<2x1x6x6xf32>, %k: tensor<4x1x3x3xf32>, %b: tensor<4xf32>) typed {
  // The bias of a convolution is added channel by channel; the strides stay with the convolution, which is now
  // primitive.
  // CHECK: %[[C:.+]] = dg.conv2d %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {{.*}}label = "c"{{.*}}strides = array<i64: 2, 2>
  // CHECK: %[[B:.+]] = dg.reshape {{.*}}shape = array<i64: 4, 1, 1>
  // CHECK: dg.add %[[C]], %[[B]]
  %c = dg.conv2d %x, %k, %b {strides = array<i64: 2, 2>} : (tensor<2x1x6x6xf32>, tensor<4x1x3x3xf32>, tensor<4xf32>) -> tensor<2x4x2x2xf32>
  // CHECK: dg.conv2d
  // CHECK-NOT: dg.add
  %d = dg.conv2d %x, %k : (tensor<2x1x6x6xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x4x4xf32>
  // CHECK: dg.return
  dg.return %c, %d : (tensor<2x4x2x2xf32>, tensor<2x4x4x4xf32>) -> ()
}

// Where all heads have one width attention goes in blocks, also with shared keys, masks, offsets and windows; scores are
// scaled by 1/√16 for a width of 32 in 2 heads. With wider values they are kept, and heads move in front of tokens.
// CHECK-LABEL: dg.graph @attention(
dg.graph @attention(%q: tensor<3x5x32xf32>, %k: tensor<3x5x16xf32>, %v: tensor<3x5x24xf32>, %m: tensor<5x5xi1>) typed {
  // CHECK: dg.block_attention %{{.+}}, %{{.+}}, %{{.+}} {causal, head_width = 16 : i64, place = #dg.place<label = "a">, scale = 2.500000e-01 : f64}
  %a = dg.attention %q, %q, %q {heads = 2, causal} : (tensor<3x5x32xf32>, tensor<3x5x32xf32>, tensor<3x5x32xf32>) -> tensor<3x5x32xf32>
  // CHECK: dg.block_attention %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} {causal, head_width = 16 : i64, offset = 1 : i64, place = #dg.place<label = "b">, scale = 2.500000e-01 : f64, window = 3 : i64}
  %b = dg.attention %q, %k, %k, %m {heads = 2, kv_heads = 1, causal, offset = 1, window = 3} : (tensor<3x5x32xf32>, tensor<3x5x16xf32>, tensor<3x5x16xf32>, tensor<5x5xi1>) -> tensor<3x5x32xf32>
  // CHECK-COUNT-3: dg.transpose {{.*}}permutation = array<i64: 0, 2, 1, 3>
  // CHECK: %[[PRODUCTS:.+]] = dg.matmul {{.*}}transpose_rhs{{.*}} -> tensor<3x1x10x5xf32>
  // CHECK: %[[SCORES:.+]] = dg.reshape %[[PRODUCTS]] {{.*}} -> tensor<3x2x5x5xf32>
  // CHECK: %[[SOFTMAX:.+]] = dg.softmax %[[SCORES]] {causal, place = #dg.place<label = "g">, scale = 2.500000e-01 : f64}
  // CHECK: %[[WEIGHTS:.+]] = dg.reshape %[[SOFTMAX]]
  // CHECK: %[[MIXED:.+]] = dg.matmul %[[WEIGHTS]]
  // CHECK: %[[SPLIT:.+]] = dg.reshape %[[MIXED]]
  // CHECK: %[[JOINED:.+]] = dg.transpose %[[SPLIT]]
  // CHECK: dg.reshape %[[JOINED]] {{.*}} -> tensor<3x5x48xf32>
  %g = dg.attention %q, %k, %v {heads = 2, kv_heads = 1, causal} : (tensor<3x5x32xf32>, tensor<3x5x16xf32>, tensor<3x5x24xf32>) -> tensor<3x5x48xf32>
  dg.return %a, %b, %g : (tensor<3x5x32xf32>, tensor<3x5x32xf32>, tensor<3x5x48xf32>) -> ()
}
