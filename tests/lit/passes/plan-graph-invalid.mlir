// More stages than there are ops with work is an error that says how many stages would do; so is a tensor axis that can
// cut no weight.
// RUN: dg-opt %s --dg-plan-graph -split-input-file -verify-diagnostics

module attributes {dg.mesh = #dg.mesh<pipe = 3>} {
  // expected-error@+1 {{cannot be cut into pipe=3: 3 pipeline stages were asked for, but the graph has only 2 ops that compute something; use at most pipe=2}}
  dg.graph @infer(%x: tensor<4x4xf32>) typed {
    %w = dg.parameter "w" tensor<4x4xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<4x4xf32>
    %a = dg.matmul %x, %w {place = #dg.place<origin = 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = dg.reshape %a {shape = array<i64: 16>, place = #dg.place<origin = 2>} : (tensor<4x4xf32>) -> tensor<16xf32>
    %b = dg.relu %r {place = #dg.place<origin = 3>} : (tensor<16xf32>) -> tensor<16xf32>
    dg.return %b {names = ["b"]} : (tensor<16xf32>) -> ()
  }
}

// -----

module attributes {dg.mesh = #dg.mesh<tensor = 3>} {
  // expected-error@+1 {{has no weight that tensor=3 divides evenly: choose a size that divides the layers' outputs}}
  dg.graph @infer(%x: tensor<8x4xf32>) typed {
    %w1 = dg.parameter "w1" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
    %w2 = dg.parameter "w2" tensor<4x8xf32> uniform 0.5 : tensor<4x8xf32>
    %a = dg.matmul %x, %w1 {transpose_rhs} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    %b = dg.matmul %a, %w2 {transpose_rhs} : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
    dg.return %b {names = ["b"]} : (tensor<8x4xf32>) -> ()
  }
}
