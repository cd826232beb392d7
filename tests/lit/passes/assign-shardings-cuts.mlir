// Every op is cut over "tensor" as its dg.cut says, whatever its operands: the first weight by its inputs, the sum not at all. The
// attribute is taken: nothing reads it afterwards.
// RUN: dg-opt %s --dg-set-mesh=tensor=2 --dg-assign-shardings | FileCheck %s --implicit-check-not=dg.cut

// CHECK: dg.parameter "w1" {{.*}}shardings = <["", "tensor"], []>
// CHECK: dg.parameter "b1" {{.*}}shardings = <[""], []>
// CHECK: dg.parameter "w2" {{.*}}shardings = <["", "tensor"], []>
// CHECK: dg.matmul {{.*}}label = "p1", shardings = <["", "tensor"], []>, <["", "tensor"], []>, <["", ""], ["tensor"]>
// CHECK: dg.add {{.*}}shardings = <["", ""], []>, <[""], []>, <["", ""], []>
// CHECK: dg.relu {{.*}}shardings = <["", "tensor"], []>, <["", "tensor"], []>
// CHECK: dg.matmul {{.*}}label = "p2", shardings = <["", "tensor"], []>, <["", "tensor"], []>, <["", ""], ["tensor"]>

dg.graph @train(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) typed {
  %w1 = dg.parameter "w1" tensor<10x6xf32> uniform 0.5 : tensor<10x6xf32>
  %b1 = dg.parameter "b1" tensor<10xf32> uniform 0.5 : tensor<10xf32>
  %w2 = dg.parameter "w2" tensor<6x10xf32> uniform 0.5 : tensor<6x10xf32>
  %b2 = dg.parameter "b2" tensor<6xf32> uniform 0.5 : tensor<6xf32>
  %p1 = dg.matmul %x, %w1 {transpose_rhs, dg.cut = #dg.cut<operand 0, dim 1>} : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
  %a1 = dg.add %p1, %b1 {dg.cut = #dg.cut<whole>} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %h = dg.relu %a1 {dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %p2 = dg.matmul %h, %w2 {transpose_rhs, dg.cut = #dg.cut<operand 1, dim 1>} : (tensor<8x10xf32>, tensor<6x10xf32>) -> tensor<8x6xf32>
  %a2 = dg.add %p2, %b2 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %d = dg.sub %a2, %y : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %sum = dg.reduce_sum %d {dims = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %half = dg.scale %sum {factor = 0.5} : (tensor<6xf32>) -> tensor<6xf32>
  %r = dg.relu %half : (tensor<6xf32>) -> tensor<6xf32>
  dg.update %b2 {param = "b2"} : (tensor<6xf32>) -> ()
  dg.update %w1 {param = "w1"} : (tensor<10x6xf32>) -> ()
  dg.return %d, %r {names = ["d", "r"]} : (tensor<8x6xf32>, tensor<6xf32>) -> ()
}
