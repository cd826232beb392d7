// A product of the backward pass whose operands are whole on every tensor rank, and which only the update of a cut
// parameter reads, is made in the parts that the ranks keep: directly, or added up to a gradient. What is no product, or
// reads something cut, follows its operands.
// RUN: dg-opt %s --dg-set-mesh=tensor=2 --dg-assign-shardings | FileCheck %s

dg.graph @train(%x: tensor<8x6xf32>) typed {
  %w = dg.parameter "w" tensor<10x6xf32> uniform 0.5 : tensor<10x6xf32>
  %b = dg.parameter "b" tensor<10xf32> uniform 0.5 : tensor<10xf32>
  %p = dg.matmul %x, %w {transpose_rhs, dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
  %a = dg.add %p, %b {dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: dg.softmax {{.*}}shardings = <["", ""], []>, <["", ""], []>
  %s = dg.softmax %a {dg.cut = #dg.cut<whole>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  // CHECK: dg.matmul {{.*}}label = "direct"{{.*}}shardings = <["", "tensor"], []>, <["", ""], []>, <["tensor", ""], []>
  %direct = dg.matmul %s, %x {transpose_lhs, place = #dg.place<label = "direct", phase = backward>} : (tensor<8x10xf32>, tensor<8x6xf32>) -> tensor<10x6xf32>
  // CHECK: dg.matmul {{.*}}label = "other"{{.*}}shardings = <["", "tensor"], []>, <["", ""], []>, <["tensor", ""], []>
  %other = dg.matmul %s, %x {transpose_lhs, place = #dg.place<label = "other", phase = backward>} : (tensor<8x10xf32>, tensor<8x6xf32>) -> tensor<10x6xf32>
  // CHECK: dg.add {{.*}}shardings = <["tensor", ""], []>, <["tensor", ""], []>, <["tensor", ""], []>
  %g = dg.add %direct, %other {place = #dg.place<phase = backward>} : (tensor<10x6xf32>, tensor<10x6xf32>) -> tensor<10x6xf32>
  // CHECK: dg.matmul {{.*}}label = "input"{{.*}}shardings = <["", "tensor"], []>, <["tensor", ""], []>, <["", ""], ["tensor"]>
  %input = dg.matmul %s, %w {place = #dg.place<label = "input", phase = backward>} : (tensor<8x10xf32>, tensor<10x6xf32>) -> tensor<8x6xf32>
  // CHECK: dg.reduce_sum {{.*}}shardings = <["", ""], []>, <[""], []>
  %gb = dg.reduce_sum %s {dims = array<i64: 0>, place = #dg.place<phase = backward>} : (tensor<8x10xf32>) -> tensor<10xf32>
  // CHECK: dg.sgd {{.*}}shardings = <["tensor", ""], []>, <["tensor", ""], []>, <["tensor", ""], []>
  %n = dg.sgd %w, %g {place = #dg.place<label = "w", phase = update>} : (tensor<10x6xf32>, tensor<10x6xf32>) -> tensor<10x6xf32>
  dg.update %n {param = "w", place = #dg.place<label = "w", phase = update>} : (tensor<10x6xf32>) -> ()
  %m = dg.sgd %b, %gb {place = #dg.place<label = "b", phase = update>} : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
  dg.update %m {param = "b", place = #dg.place<label = "b", phase = update>} : (tensor<10xf32>) -> ()
  dg.return %input {names = ["d"]} : (tensor<8x6xf32>) -> ()
}
