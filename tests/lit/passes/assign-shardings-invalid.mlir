// A mesh or a cut that divides nothing is an error, not a plan in which every rank does the same: rows of an input over
// "data", dimensions that do not divide over "tensor", or that the rule of the op keeps whole.
// RUN: dg-opt %s --dg-set-mesh="data=2 tensor=3" --dg-assign-shardings -split-input-file -verify-diagnostics

// expected-error@+1 {{input 'y' has 7 rows, which do not divide over data=2}}
dg.graph @infer(%x: tensor<8x6xf32>, %y: tensor<7xf32>) typed {
  dg.return %x {names = ["x"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x4xf32>) typed {
  %w = dg.parameter "w" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
  // expected-error@+1 {{is to be cut along dimension 1 of result 0, a 'tensor<8x8xf32>', over tensor=3: expected a size that it divides}}
  %a = dg.matmul %x, %w {transpose_rhs, dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  dg.return %a {names = ["a"]} : (tensor<8x8xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error@+1 {{cannot be cut over tensor=3 along dimension 1 of operand 0: expected one that its sharding rule can cut so many ways}}
  %s = dg.softmax %x {dg.cut = #dg.cut<operand 0, dim 1>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %s {names = ["s"]} : (tensor<8x6xf32>) -> ()
}
