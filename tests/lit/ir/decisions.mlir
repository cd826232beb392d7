// What was decided about a module and its ops is typed, and reads as it prints: mesh, precision, cut, recomputation, place.
// RUN: dg-opt %s | FileCheck %s
// RUN: dg-opt %s | dg-opt | FileCheck %s
// RUN: dg-opt %s --emit-bytecode | dg-opt | FileCheck %s

// CHECK: module attributes
// CHECK-SAME: dg.mesh = #dg.mesh<data = 2, tensor = 4, pipe = 1>
// CHECK-SAME: dg.precision = [#dg.precision<"p", "matmul", bf16, "products sum in f32">]
module attributes {dg.mesh = #dg.mesh<tensor = 4, data = 2>, dg.precision = [#dg.precision<"p", "matmul", bf16, "products sum in f32">]} {
  dg.graph @infer(%x: tensor<8x4xf32>) typed {
    %w = dg.parameter "w" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
    // CHECK: dg.matmul {{.*}}dg.cut = #dg.cut<result 0, dim 1>, dg.recompute, place = #dg.place<label = "p", origin = 1, stage = 0>
    %p = dg.matmul %x, %w {transpose_rhs, dg.cut = #dg.cut<result 0, dim 1>, dg.recompute, place = #dg.place<label = "p", origin = 1, stage = 0>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    // CHECK: dg.matmul {{.*}}dg.cut = #dg.cut<operand 1, dim 0>
    %q = dg.matmul %x, %w {transpose_rhs, dg.cut = #dg.cut<operand 1, dim 0>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    // CHECK: dg.relu {{.*}}dg.cut = #dg.cut<whole>
    %r = dg.relu %p {dg.cut = #dg.cut<whole>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    dg.return %r {names = ["r"]} : (tensor<8x8xf32>) -> ()
  }
}
