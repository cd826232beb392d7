// A mesh or a cut that divides nothing is an error, not a plan in which every rank does the same: rows of an input over
// "data", dimensions that do not exist or do not divide over "tensor".
// RUN: dg-opt %s --dg-set-mesh="data=2 tensor=3" --dg-assign-shardings -split-input-file -verify-diagnostics

// expected-error@+1 {{input 'y' has 7 rows, which do not divide over data=2}}
dg.graph @infer(%x: tensor<8x6xf32>, %y: tensor<7xf32>) typed {
  dg.return %x {names = ["x"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x4xf32>) typed {
  %w = dg.parameter "w" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
  // expected-error@+1 {{cannot be cut over tensor=3 along dimension 1 of result 0: expected one that it divides}}
  %a = dg.matmul %x, %w {transpose_rhs, dg.cut = {dim = 1 : i64, result = 0 : i64}} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  dg.return %a {names = ["a"]} : (tensor<8x8xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x4xf32>) typed {
  %w = dg.parameter "w" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
  // expected-error@+1 {{cannot be cut over tensor=3 along dimension 7 of result 0: expected one that it divides}}
  %a = dg.matmul %x, %w {transpose_rhs, dg.cut = {dim = 7 : i64, result = 0 : i64}} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  dg.return %a {names = ["a"]} : (tensor<8x8xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x4xf32>) typed {
  %w = dg.parameter "w" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
  // expected-error@+1 {{cannot be cut over tensor=3 along dimension 0 of operand 5: expected one that it divides}}
  %a = dg.matmul %x, %w {transpose_rhs, dg.cut = {dim = 0 : i64, operand = 5 : i64}} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  dg.return %a {names = ["a"]} : (tensor<8x8xf32>) -> ()
}
