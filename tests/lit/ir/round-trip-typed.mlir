// A graph with deduced types prints as text that parses to the same graph, for every op: those of a model, their
// gradients, optimizer steps, and what the split and fuse phases insert; text and bytecode agree.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first > %t.second
// RUN: diff %t.first %t.second
// RUN: dg-opt %s -emit-bytecode | dg-opt > %t.bytecode
// RUN: diff %t.first %t.bytecode
// RUN: FileCheck %s < %t.second

// CHECK-LABEL: dg.graph @elementwise(%{{.*}}: tensor<4x3xf32>, %{{.*}}: tensor<3xf32>) typed attributes {input_names = ["x", "b"]} {
dg.graph @elementwise(%x: tensor<4x3xf32>, %b: tensor<3xf32>) typed {
  // CHECK: dg.add {{.*}} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %0 = dg.add %x, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.sub
  %1 = dg.sub %0, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.mul
  %2 = dg.mul %1, %0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.div
  %3 = dg.div %2, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.scale {{.*}} {factor = 2.000000e+00 : f64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = dg.scale %3 {factor = 2.0} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.relu
  %5 = dg.relu %4 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.relu_grad
  %6 = dg.relu_grad %4, %5 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.gelu
  %7 = dg.gelu %6 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.gelu_grad
  %8 = dg.gelu_grad %7, %6 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.constant {type = tensor<2xf64>, value = -1.000000e+00 : f64} : () -> tensor<2xf64>
  %9 = dg.constant {value = -1.0, type = tensor<2xf64>} : () -> tensor<2xf64>
  // CHECK: dg.literal {{.*}}value = dense<[1, -2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %literal = dg.literal {value = dense<[1, -2]> : tensor<2xi64>} : () -> tensor<2xi64>
  // CHECK: [[F:%.+]]:2 = dg.fused {{%.+, %.+}} : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<4x3xf32>, %{{.*}}: tensor<3xf32>):
  // CHECK: dg.return {{.*}} : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  %10:2 = dg.fused %8, %b : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  ^bb0(%p: tensor<4x3xf32>, %q: tensor<3xf32>):
    %s = dg.add %p, %q : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %r = dg.relu %s : (tensor<4x3xf32>) -> tensor<4x3xf32>
    dg.return %s, %r : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  }
  // CHECK: dg.return [[F]]#0, [[F]]#1, {{%.+}} {names = ["s", "r", "c"]} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<2xf64>) -> ()
  dg.return %10#0, %10#1, %9 {names = ["s", "r", "c"]} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<2xf64>) -> ()
}

// CHECK-LABEL: dg.graph @contraction(
dg.graph @contraction(%x: tensor<2x5x8xf32>, %image: tensor<2x3x8x8xf32>) typed {
  // CHECK: dg.parameter "w" tensor<8x8xf32> uniform 5.000000e-01 : tensor<8x8xf32>
  %w = dg.parameter "w" tensor<8x8xf32> uniform 0.5 : tensor<8x8xf32>
  // CHECK: dg.parameter "k" tensor<4x3x3x3xf32> file : tensor<4x3x3x3xf32>
  %k = dg.parameter "k" tensor<4x3x3x3xf32> file : tensor<4x3x3x3xf32>
  // CHECK: dg.linear {{.*}} : (tensor<2x5x8xf32>, tensor<8x8xf32>) -> tensor<2x5x8xf32>
  %0 = dg.linear %x, %w : (tensor<2x5x8xf32>, tensor<8x8xf32>) -> tensor<2x5x8xf32>
  // CHECK: dg.matmul {{.*}} {transpose_lhs} : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x8x8xf32>
  %1 = dg.matmul %x, %0 {transpose_lhs} : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x8x8xf32>
  // CHECK: dg.attention {{.*}} {heads = 2 : i64}
  %2 = dg.attention %0, %0, %0 {heads = 2} : (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  // CHECK: dg.conv2d {{.*}} {padding = array<i64: 1, 1>, strides = array<i64: 2, 2>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  %3 = dg.conv2d %image, %k {strides = array<i64: 2, 2>, padding = array<i64: 1, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  // CHECK: dg.conv2d_input_grad {{.*}}input_size = array<i64: 8, 8>
  %4 = dg.conv2d_input_grad %3, %k {input_size = array<i64: 8, 8>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>} : (tensor<2x4x4x4xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  // CHECK: dg.conv2d_weight_grad {{.*}}kernel_size = array<i64: 3, 3>
  %5 = dg.conv2d_weight_grad %3, %image {kernel_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>} : (tensor<2x4x4x4xf32>, tensor<2x3x8x8xf32>) -> tensor<4x3x3x3xf32>
  // CHECK: dg.max_pool2d
  %6 = dg.max_pool2d %4 {kernel = array<i64: 2, 2>} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  // CHECK: dg.max_pool2d_grad
  %7 = dg.max_pool2d_grad %6, %4 {kernel = array<i64: 2, 2>} : (tensor<2x3x4x4xf32>, tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  dg.return %1, %2, %5, %7 : (tensor<2x8x8xf32>, tensor<2x5x8xf32>, tensor<4x3x3x3xf32>, tensor<2x3x8x8xf32>) -> ()
}

// CHECK-LABEL: dg.graph @rows(
dg.graph @rows(%x: tensor<4x6xf32>, %i: tensor<4xi32>, %w: tensor<6xf32>) typed {
  // CHECK: dg.softmax {{%.+}} {scale = 1.000000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = dg.softmax %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.softmax_grad {{.*}} {scale = 5.000000e-01 : f64}
  %1 = dg.softmax_grad %x, %0 {scale = 0.5} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.log_softmax
  %2 = dg.log_softmax %1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.log_softmax_grad
  %3 = dg.log_softmax_grad %1, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.layer_norm {{.*}} {epsilon = {{.*}} : f64}
  %4 = dg.layer_norm %3, %w, %w {epsilon = 1.0e-6} : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  // CHECK: [[DX:%.+]], [[DW:%.+]], [[DB:%.+]] = dg.layer_norm_grad {{.*}}label = "dx"{{.*}} -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>)
  %dx:3 = dg.layer_norm_grad %4, %3, %w : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>)
  // CHECK: dg.embedding {{.*}} : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4x6xf32>
  %e = dg.embedding %dx#0, %i : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4x6xf32>
  // CHECK: dg.embedding_grad {{.*}} {rows = 9 : i64}
  %5 = dg.embedding_grad %e, %i {rows = 9} : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<9x6xf32>
  // CHECK: dg.pick
  %6 = dg.pick %e, %i : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4xf32>
  // CHECK: dg.pick_grad {{.*}} {classes = 6 : i64}
  %7 = dg.pick_grad %6, %i {classes = 6} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4x6xf32>
  // CHECK: dg.correct
  %8 = dg.correct %7, %i : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4xf32>
  // CHECK: dg.mse {{.*}} -> tensor<f32>
  %9 = dg.mse %6, %8 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  // CHECK: dg.nll
  %10 = dg.nll %2, %i : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: dg.cross_entropy
  %11 = dg.cross_entropy %x, %i : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: dg.return {{%.+}}, [[DW]], [[DB]],
  dg.return %5, %dx#1, %dx#2, %9, %10, %11 : (tensor<9x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> ()
}

// CHECK-LABEL: dg.graph @shapes(
dg.graph @shapes(%x: tensor<4x6xf32>) typed {
  // CHECK: dg.reshape
  %0 = dg.reshape %x {shape = array<i64: 2, 2, 6>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  // CHECK: dg.transpose
  %1 = dg.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<2x2x6xf32>) -> tensor<6x2x2xf32>
  // CHECK: dg.reduce_sum
  %2 = dg.reduce_sum %1 {dims = array<i64: 0>} : (tensor<6x2x2xf32>) -> tensor<2x2xf32>
  // CHECK: dg.expand
  %3 = dg.expand %2 {shape = array<i64: 3, 2, 2>} : (tensor<2x2xf32>) -> tensor<3x2x2xf32>
  dg.return %3 : (tensor<3x2x2xf32>) -> ()
}

// CHECK-LABEL: dg.graph @optimizer() typed attributes {input_names = []} {
dg.graph @optimizer() typed {
  %p = dg.parameter "p" tensor<4xf32> uniform 0.5 : tensor<4xf32>
  // CHECK: dg.parameter "p.m" tensor<4xf32> constant 0.000000e+00 {state} : tensor<4xf32>
  %m = dg.parameter "p.m" tensor<4xf32> constant 0.0 {state} : tensor<4xf32>
  %v = dg.parameter "p.v" tensor<4xf32> constant 0.0 {state} : tensor<4xf32>
  // CHECK: dg.sgd {{.*}} {weight_decay = 1.000000e-02 : f64}
  %0 = dg.sgd %p, %m {weight_decay = 0.01} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: [[P1:%.+]], {{%.+}} = dg.momentum {{.*}} {momentum = 9.000000e-01 : f64, nesterov, place = #dg.place<label = "p1">, weight_decay = 0.000000e+00 : f64}
  %p1:2 = dg.momentum %p, %0, %m {momentum = 0.9, nesterov} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: [[P2:%.+]], {{%.+}}, {{%.+}} = dg.adam {{%.+}}, [[P1]], {{.*}} {beta1 = 8.000000e-01 : f64, beta2 = 0.99{{.*}}decoupled,
  %p2:3 = dg.adam %p, %p1#0, %m, %v {beta1 = 0.8, decoupled} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: dg.update [[P2]] {param = "p"} : (tensor<4xf32>) -> ()
  dg.update %p2#0 {param = "p"} : (tensor<4xf32>) -> ()
  dg.update %p2#1 {param = "p.m"} : (tensor<4xf32>) -> ()
  dg.update %p2#2 {param = "p.v"} : (tensor<4xf32>) -> ()
  // CHECK: dg.return{{$}}
  dg.return
}

// A chunk: one stage and phase of a program. Parameters and results are one rank's shards; the type of the whole
// parameter stays.
// CHECK-LABEL: dg.graph @train.1.backward(%{{.*}}: tensor<4x6xf32>) typed attributes {input_names = ["h/relu"], phase = 2 : i32, program = "train", stage = 1 : i64} {
dg.graph @train.1.backward(%h: tensor<4x6xf32>) typed attributes {input_names = ["h/relu"], phase = 2 : i32, program = "train", stage = 1 : i64} {
  // CHECK: dg.parameter "w" tensor<12x6xf32> uniform 5.000000e-01 {place = #dg.place<origin = 0, stage = 1, shardings = <["tensor", ""], []>>} : tensor<6x6xf32>
  %w = dg.parameter "w" tensor<12x6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 1, shardings = <["tensor", ""], []>>} : tensor<6x6xf32>
  // CHECK: [[R:%.+]] = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<4x6xf32>
  %0 = dg.receive {channel = 3, peer_stage = 0} : () -> tensor<4x6xf32>
  // CHECK: dg.matmul [[R]], {{.*}}place = #dg.place<label = "fc", origin = 2, phase = backward, stage = 1, shardings = <["data", ""], []>, <["tensor", ""], []>, <["data", "tensor"], ["tensor"]>>, transpose_rhs}
  %1 = dg.matmul %0, %w {transpose_rhs, place = #dg.place<label = "fc", origin = 2, phase = backward, stage = 1, shardings = <["data", ""], []>, <["tensor", ""], []>, <["data", "tensor"], ["tensor"]>>} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.all_reduce {{.*}} {axis = "tensor"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = dg.all_reduce %1 {axis = "tensor"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: dg.all_gather {{.*}} {axis = "data", dim = 0 : i64} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  %3 = dg.all_gather %2 {axis = "data", dim = 0} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  // CHECK: dg.reduce_scatter {{.*}} {axis = "data", dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %4 = dg.reduce_scatter %3 {axis = "data", dim = 1} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  // CHECK: dg.slice_shard {{.*}} {axis = "tensor", dim = 0 : i64} : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %5 = dg.slice_shard %4 {axis = "tensor", dim = 0} : (tensor<8x3xf32>) -> tensor<4x3xf32>
  // CHECK: dg.send {{.*}} {channel = 4 : i64, peer_stage = 0 : i64} : (tensor<4x3xf32>) -> ()
  dg.send %5 {channel = 4, peer_stage = 0} : (tensor<4x3xf32>) -> ()
  // CHECK: dg.accumulate {{.*}} {accumulator = "grad w"} : (tensor<4x6xf32>) -> ()
  dg.accumulate %2 {accumulator = "grad w"} : (tensor<4x6xf32>) -> ()
  // CHECK: dg.accumulated {accumulator = "grad w"} : () -> tensor<4x6xf32>
  %6 = dg.accumulated {accumulator = "grad w"} : () -> tensor<4x6xf32>
  dg.return %6 {names = ["grad w"]} : (tensor<4x6xf32>) -> ()
}
