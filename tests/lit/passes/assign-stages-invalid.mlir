// More stages than there are ops with work is an error that says how many stages would do.
// RUN: dg-opt %s --dg-assign-stages=mesh=pipe=3 -verify-diagnostics
// RUN: not dg-opt %s --dg-assign-stages=mesh=pipes=3 2>&1 | FileCheck %s

// CHECK: error: mesh 'pipes=3': there is no axis 'pipes', expected data, tensor or pipe

// expected-error@+1 {{cannot be cut into pipe=3: 3 pipeline stages were asked for, but the graph has only 2 ops that compute something; use at most pipe=2}}
dg.graph @infer(%x: tensor<4x4xf32>) typed {
  %w = dg.parameter "w" tensor<4x4xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<4x4xf32>
  %a = dg.matmul %x, %w {place = #dg.place<origin = 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = dg.reshape %a {shape = array<i64: 16>, place = #dg.place<origin = 2>} : (tensor<4x4xf32>) -> tensor<16xf32>
  %b = dg.relu %r {place = #dg.place<origin = 3>} : (tensor<16xf32>) -> tensor<16xf32>
  dg.return %b {names = ["b"]} : (tensor<16xf32>) -> ()
}
