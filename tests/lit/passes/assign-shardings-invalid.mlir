// A mesh that divides nothing is an error, not a plan in which every rank does the same: rows of an input over "data",
// weights over "tensor".
// RUN: dg-opt %s --dg-assign-shardings=mesh=data=2,tensor=3 -split-input-file -verify-diagnostics
// RUN: not dg-opt %s --dg-assign-shardings=mesh=tensor=two -split-input-file 2>&1 | FileCheck %s
// RUN: not dg-opt %s --dg-assign-shardings="mesh=tensor=2 choices=none" -split-input-file 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not dg-opt %s --dg-assign-shardings="mesh=tensor=2 choices=r0.1,r0.7" -split-input-file 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not dg-opt %s --dg-assign-shardings="mesh=tensor=2 choices=x,none" -split-input-file 2>&1 | FileCheck %s --check-prefix=WORD

// FEW: was given 1 choices, expected one for each of its 2 forward ops
// DIM: cannot be cut over tensor=2 along r0.7, expected none, rI.D or oI.D: dimension D of result or operand I
// WORD: cannot be cut over tensor=2 along x, expected none

// CHECK: error: mesh 'tensor=two': found 'tensor=two', expected AXIS=SIZE with a size from 1 to 1048576

// expected-error@+1 {{input 'y' has 7 rows, which do not divide over data=2}}
dg.graph @infer(%x: tensor<8x6xf32>, %y: tensor<7xf32>) typed {
  dg.return %x {names = ["x"]} : (tensor<8x6xf32>) -> ()
}

// -----

// expected-error@+1 {{has no weight that tensor=3 divides evenly: choose a size that divides the layers' outputs}}
dg.graph @infer(%x: tensor<8x4xf32>) typed {
  %w1 = dg.parameter "w1" tensor<8x4xf32> uniform 0.5 : tensor<8x4xf32>
  %w2 = dg.parameter "w2" tensor<4x8xf32> uniform 0.5 : tensor<4x8xf32>
  %a = dg.matmul %x, %w1 {transpose_rhs} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %b = dg.matmul %a, %w2 {transpose_rhs} : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
  dg.return %b {names = ["b"]} : (tensor<8x4xf32>) -> ()
}
