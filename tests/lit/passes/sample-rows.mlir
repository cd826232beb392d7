// The results of @infer with a row for each sample are named for the plan, whatever their shapes happen to be: "sum" and "gram" have
// as many rows as the inputs and "turned" has the samples in another dimension.
// RUN: dg-opt %s --dg-set-mesh=data=1 --dg-assign-shardings | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh=data=2 --dg-assign-shardings | FileCheck %s

// CHECK: module attributes {{.*}}dg.sample_rows = ["rows", "scaled", "x"]}
dg.graph @infer(%x: tensor<8x8xf32>) typed {
  %w = dg.parameter "w" tensor<8x8xf32> uniform 0.5 : tensor<8x8xf32>
  %rows = dg.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = dg.reduce_sum %x {dims = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8xf32>
  %scaled = dg.mul %rows, %sum : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %turned = dg.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %gram = dg.matmul %turned, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %doubled = dg.scale %w {factor = 2.0} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  dg.return %rows, %sum, %scaled, %turned, %gram, %w, %doubled, %x {names = ["rows", "sum", "scaled", "turned", "gram", "w", "doubled", "x"]} : (tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> ()
}
