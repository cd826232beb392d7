// A reshape of a parameter that another reader places first lies as the parameter does: whole on one rank, and cut where
// the first dimension is.
// RUN: dg-opt %s --dg-deduce-types --dg-decompose --dg-set-mesh=data=1 --dg-assign-shardings | FileCheck %s --check-prefix=ONE
// RUN: dg-opt %s --dg-deduce-types --dg-decompose --dg-set-mesh=tensor=2 --dg-assign-shardings | FileCheck %s --check-prefix=TENSOR

dg.graph @train(%x: tensor<8x4xf32>) {
  %w = dg.parameter "w" tensor<4x4xf32> normal 0.1
  // ONE: dg.reshape {{.*}}shardings = <["", ""], []>, <[""], []>
  // TENSOR: dg.reshape {{.*}}shardings = <["tensor", ""], []>, <["tensor"], []>
  %r = dg.reshape %w {shape = array<i64: 16>}
  // TENSOR: dg.matmul {{.*}}shardings = <["", ""], []>, <["tensor", ""], []>, <["", "tensor"], []>
  %a = dg.matmul %x, %w {transpose_rhs, dg.cut = #dg.cut<result 0, dim 1>}
  %v = dg.parameter "v" tensor<4x4xf32> normal 0.1
  %b = dg.linear %a, %v
  // ONE: dg.reduce_sum {{.*}}shardings = <[""], []>, <[], []>
  // TENSOR: dg.reduce_sum {{.*}}shardings = <["tensor"], []>, <[], ["tensor"]>
  %s = dg.reduce_sum %r {dims = array<i64: 0>}
  %y = dg.add %b, %s
  dg.return %y {names = ["y"]}
}
