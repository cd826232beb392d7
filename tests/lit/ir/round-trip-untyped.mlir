// A model as a person writes it, with no type but those of inputs and parameters, prints as text that parses to the
// same model, for every op that a model may hold; text and bytecode agree.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first > %t.second
// RUN: diff %t.first %t.second
// RUN: dg-opt %s -emit-bytecode | dg-opt > %t.bytecode
// RUN: diff %t.first %t.bytecode
// RUN: FileCheck %s < %t.second

// CHECK: module attributes {dg.optimizer = "sgd:lr=0.01"}
module attributes {dg.optimizer = "sgd:lr=0.01"} {
  // The names of the arguments are kept, whatever the printer calls them.
  // CHECK-LABEL: dg.graph @loss(%{{.*}}: tensor<?x1x28x28xf32>, %{{.*}}: tensor<?xi32>) attributes {input_names = ["images", "labels"]} {
  dg.graph @loss(%images: tensor<?x1x28x28xf32>, %labels: tensor<?xi32>) {
    // CHECK: dg.parameter "conv.weight" tensor<4x1x5x5xf32> uniform 2.000000e-01
    // CHECK-NOT: : tensor
    // CHECK: dg.parameter "conv.bias" tensor<4xf32> constant 0.000000e+00
    // CHECK: dg.parameter "fc.weight" tensor<10x576xf32> normal 1.000000e-02 {frozen}
    // CHECK: dg.parameter "fc.bias" tensor<10xf32> file
    %cw = dg.parameter "conv.weight" tensor<4x1x5x5xf32> uniform 0.2
    %cb = dg.parameter "conv.bias" tensor<4xf32> constant 0.0
    %w = dg.parameter "fc.weight" tensor<10x576xf32> normal 0.01 {frozen}
    %b = dg.parameter "fc.bias" tensor<10xf32> file
    // CHECK: [[CONV:%.+]] = dg.conv2d {{%.+, %.+, %.+}} {padding = array<i64: 0, 0>, place = #dg.place<label = "conv">, strides = array<i64: 1, 1>}{{$}}
    %conv = dg.conv2d %images, %cw, %cb {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>}
    // CHECK: [[POOL:%.+]] = dg.max_pool2d [[CONV]] {kernel = array<i64: 2, 2>, place = #dg.place<label = "pool">}{{$}}
    %pool = dg.max_pool2d %conv {kernel = array<i64: 2, 2>}
    // CHECK: dg.max_pool2d [[CONV]] {kernel = array<i64: 2, 2>, place = #dg.place<label = "pool_again">, strides = array<i64: 1, 2>}
    %pool_again = dg.max_pool2d %conv {kernel = array<i64: 2, 2>, strides = array<i64: 1, 2>}
    // CHECK: dg.relu [[POOL]]
    %h = dg.relu %pool
    // CHECK: dg.reshape {{%.+}} {place = #dg.place<label = "flat">, shape = array<i64: 0, -1>}{{$}}
    %flat = dg.reshape %h {shape = array<i64: 0, -1>}
    // CHECK: dg.linear {{%.+, %.+, %.+}} {place = #dg.place<label = "fc">}{{$}}
    %fc = dg.linear %flat, %w, %b
    // CHECK: dg.log_softmax
    %logp = dg.log_softmax %fc
    // CHECK: [[NLL:%.+]] = dg.nll
    %nll = dg.nll %logp, %labels
    // CHECK: dg.cross_entropy
    %loss = dg.cross_entropy %fc, %labels
    // CHECK: dg.return [[NLL]], {{%.+}}{{$}}
    dg.return %nll, %loss
  }

  // CHECK-LABEL: dg.graph @forward(
  dg.graph @forward(%x: tensor<?x8x16xf32>, %tokens: tensor<?x8xi64>) {
    %table = dg.parameter "table" tensor<32x16xf32> normal 0.02
    %g = dg.parameter "norm.weight" tensor<16xf32> constant 1.0
    %s = dg.parameter "norm.bias" tensor<16xf32> constant 0.0
    // CHECK: dg.embedding
    %e = dg.embedding %table, %tokens
    // CHECK: dg.add
    %a = dg.add %e, %x
    // A default that the author left out is written.
    // CHECK: dg.layer_norm {{%.+, %.+, %.+}} {epsilon = 1.000000e-05 : f64, place = #dg.place<label = "n">}{{$}}
    %n = dg.layer_norm %a, %g, %s
    // CHECK: dg.attention {{.*}} {causal, heads = 4 : i64,
    %att = dg.attention %n, %n, %n {heads = 4, causal}
    // CHECK: dg.matmul {{.*}}transpose_rhs}{{$}}
    %scores = dg.matmul %n, %att {transpose_rhs}
    // CHECK: dg.softmax {{.*}} {causal, place = {{.*}}, scale = 1.250000e-01 : f64}{{$}}
    %p = dg.softmax %scores {scale = 0.125, causal}
    // CHECK: dg.transpose {{.*}} {permutation = array<i64: 0, 2, 1>
    %t = dg.transpose %p {permutation = array<i64: 0, 2, 1>}
    // CHECK: dg.gelu
    %gelu = dg.gelu %n
    // CHECK: dg.scale {{.*}} {factor = 5.000000e-01 : f64
    %half = dg.scale %gelu {factor = 0.5}
    // CHECK: dg.sub
    // CHECK: dg.mul
    // CHECK: dg.div
    %d = dg.sub %half, %n
    %m = dg.mul %d, %d
    %q = dg.div %m, %n
    // CHECK: dg.reduce_sum {{.*}} {dims = array<i64: 0, 2>, keep,
    %sum = dg.reduce_sum %q {dims = array<i64: 0, 2>, keep}
    // CHECK: dg.expand {{.*}}shape = array<i64: 4, 8, 16>
    %wide = dg.expand %sum {shape = array<i64: 4, 8, 16>}
    // CHECK: dg.pick
    // CHECK: dg.correct
    %picked = dg.pick %q, %tokens
    %right = dg.correct %q, %tokens
    // CHECK: dg.mse
    %mse = dg.mse %picked, %right
    // CHECK: dg.constant {place = #dg.place<label = "one">, type = tensor<f32>, value = 1.000000e+00 : f64}{{$}}
    %one = dg.constant {value = 1.0, type = tensor<f32>}
    // CHECK: dg.return {{.*}} {names = ["y", "wide", "t", "error", "one"]}{{$}}
    dg.return %q, %wide, %t, %mse, %one {names = ["y", "wide", "t", "error", "one"]}
  }
}
