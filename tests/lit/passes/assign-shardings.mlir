// Samples are cut over "data" and what is summed over them is partial; over "tensor" a first weight is to be
// cut by its outputs, so that the next one is by its inputs, and their product is partial; parameters lie equally in every graph.
// RUN: dg-opt %s --dg-set-mesh=data=2 --dg-assign-shardings | FileCheck %s --check-prefix=DATA
// RUN: dg-opt %s --dg-set-mesh=tensor=2 --dg-assign-shardings | FileCheck %s --check-prefix=TENSOR
// RUN: dg-opt %s --dg-set-mesh="data=2 tensor=2" --dg-assign-shardings | FileCheck %s --check-prefix=BOTH
// RUN: dg-opt %s --dg-set-mesh=data=2 --dg-assign-shardings=zero=1 | FileCheck %s --check-prefix=ZERO1
// RUN: dg-opt %s --dg-set-mesh=data=2 --dg-assign-shardings=zero=3 | FileCheck %s --check-prefix=ZERO3
// RUN: dg-opt %s --dg-set-mesh=pipe=2 --dg-assign-shardings | FileCheck %s --check-prefix=WHOLE

// Pipeline stages cut no tensor.
// WHOLE: dg.matmul {{.*}}shardings = <["", ""], []>, <["", ""], []>, <["", ""], []>
// WHOLE-NOT: "{{data|tensor|pipe}}"

// DATA-LABEL: dg.graph @train(
// TENSOR-LABEL: dg.graph @train(
// BOTH-LABEL: dg.graph @train(
// ZERO1-LABEL: dg.graph @train(
// ZERO3-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) typed {
  // DATA: dg.parameter "w1" {{.*}}shardings = <["", ""], []>
  // What is updated lies cut with ZeRO 3 only, and is used whole.
  // ZERO1: dg.parameter "w1" {{.*}}shardings = <["", ""], []>
  // ZERO3: dg.parameter "w1" {{.*}}shardings = <["data", ""], []>
  // ZERO3: dg.parameter "b1" {{.*}}shardings = <[""], []>
  // ZERO3: dg.matmul {{.*}}label = "p1", shardings = <["data", ""], []>, <["", ""], []>, <["data", ""], []>
  // ZERO1: dg.update {{.*}}param = "w1"{{.*}}shardings = <["", ""], []>
  // ZERO3: dg.update {{.*}}param = "w1"{{.*}}shardings = <["data", ""], []>
  // TENSOR: dg.parameter "w1" {{.*}}shardings = <["tensor", ""], []>
  // TENSOR: dg.parameter "b1" {{.*}}shardings = <["tensor"], []>
  // TENSOR: dg.parameter "w2" {{.*}}shardings = <["", "tensor"], []>
  // TENSOR: dg.parameter "b2" {{.*}}shardings = <[""], []>
  %w1 = dg.parameter "w1" tensor<10x6xf32> uniform 0.5 : tensor<10x6xf32>
  %b1 = dg.parameter "b1" tensor<10xf32> uniform 0.5 : tensor<10xf32>
  %w2 = dg.parameter "w2" tensor<6x10xf32> uniform 0.5 : tensor<6x10xf32>
  %b2 = dg.parameter "b2" tensor<6xf32> uniform 0.5 : tensor<6xf32>
  // Operands first, then results.
  // DATA: dg.matmul {{.*}}label = "p1", shardings = <["data", ""], []>, <["", ""], []>, <["data", ""], []>
  // TENSOR: dg.matmul {{.*}}label = "p1", shardings = <["", ""], []>, <["tensor", ""], []>, <["", "tensor"], []>
  // BOTH: dg.matmul {{.*}}label = "p1", shardings = <["data", ""], []>, <["tensor", ""], []>, <["data", "tensor"], []>
  %p1 = dg.matmul %x, %w1 {transpose_rhs, dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
  // TENSOR: dg.add {{.*}}shardings = <["", "tensor"], []>, <["tensor"], []>, <["", "tensor"], []>
  %a1 = dg.add %p1, %b1 : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // TENSOR: dg.relu {{.*}}shardings = <["", "tensor"], []>, <["", "tensor"], []>
  %h = dg.relu %a1 : (tensor<8x10xf32>) -> tensor<8x10xf32>
  // DATA: dg.matmul {{.*}}label = "p2", shardings = <["data", ""], []>, <["", ""], []>, <["data", ""], []>
  // TENSOR: dg.matmul {{.*}}label = "p2", shardings = <["", "tensor"], []>, <["", "tensor"], []>, <["", ""], ["tensor"]>
  // BOTH: dg.matmul {{.*}}label = "p2", shardings = <["data", "tensor"], []>, <["", "tensor"], []>, <["data", ""], ["tensor"]>
  %p2 = dg.matmul %h, %w2 {transpose_rhs} : (tensor<8x10xf32>, tensor<6x10xf32>) -> tensor<8x6xf32>
  // The bias is no partial sum, so the sum must be complete before it is added.
  // TENSOR: dg.add {{.*}}shardings = <["", ""], []>, <[""], []>, <["", ""], []>
  %a2 = dg.add %p2, %b2 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %d = dg.sub %a2, %y : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  // A sum over samples is partial over "data"; what is linear in it stays so.
  // DATA: dg.reduce_sum {{.*}}label = "sum", shardings = <["data", ""], []>, <[""], ["data"]>
  // TENSOR: dg.reduce_sum {{.*}}label = "sum", shardings = <["", ""], []>, <[""], []>
  // BOTH: dg.reduce_sum {{.*}}label = "sum", shardings = <["data", ""], []>, <[""], ["data"]>
  %sum = dg.reduce_sum %d {dims = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  // DATA: dg.scale {{.*}}shardings = <[""], ["data"]>, <[""], ["data"]>
  %half = dg.scale %sum {factor = 0.5} : (tensor<6xf32>) -> tensor<6xf32>
  // DATA: dg.relu {{.*}}shardings = <[""], []>, <[""], []>
  %r = dg.relu %half : (tensor<6xf32>) -> tensor<6xf32>
  // New values lie as their parameter does; rows of samples stay where the samples are, other results are whole.
  // DATA: dg.update {{.*}}shardings = <[""], []>
  // DATA: dg.return {{.*}}shardings = <["data", ""], []>, <[""], []>
  // TENSOR: dg.update {{.*}}param = "w1"{{.*}}shardings = <["tensor", ""], []>
  // TENSOR: dg.return {{.*}}shardings = <["", ""], []>, <[""], []>
  dg.update %b2 {param = "b2"} : (tensor<6xf32>) -> ()
  dg.update %w1 {param = "w1"} : (tensor<10x6xf32>) -> ()
  dg.return %d, %r {names = ["d", "r"]} : (tensor<8x6xf32>, tensor<6xf32>) -> ()
}

// @eval uses w1 where nothing would ask for a cut, but it lies as it does in @train.
// TENSOR-LABEL: dg.graph @eval(
// TENSOR: dg.parameter "w1" {{.*}}shardings = <["tensor", ""], []>
dg.graph @eval() typed {
  %w1 = dg.parameter "w1" tensor<10x6xf32> uniform 0.5 : tensor<10x6xf32>
  %r = dg.relu %w1 : (tensor<10x6xf32>) -> tensor<10x6xf32>
  dg.return %r {names = ["r"]} : (tensor<10x6xf32>) -> ()
}

// Rows of an inference stay where their samples are.
// DATA-LABEL: dg.graph @infer(
// DATA: dg.return {{.*}}shardings = <["data", ""], []>
dg.graph @infer(%x: tensor<8x6xf32>) typed {
  %r = dg.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %r {names = ["r"]} : (tensor<8x6xf32>) -> ()
}
