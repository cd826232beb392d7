// Ops that draw random numbers refuse what they cannot draw.
// RUN: not dg-opt %s --dg-deduce-types -split-input-file 2>&1 | FileCheck %s

dg.graph @forward(%x: tensor<4x3xf32>) {
  // CHECK: error: 'dg.dropout' op has rate 1.000000e+00 : f64, expected at least 0 and less than 1
  %y = dg.dropout %x {rate = 1.0}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) {
  // CHECK: error: 'dg.random_normal' op has 1 operands and a type, expected either a tensor that the result is like, or its type
  %y = dg.random_normal %x {type = tensor<4xf32>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) {
  // CHECK: error: 'dg.random_uniform' op draws numbers of 'tensor<4xi64>', expected a tensor of floats whose sizes are all numbers
  %y = dg.random_uniform {type = tensor<4xi64>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) {
  // CHECK: error: 'dg.random_uniform' op draws numbers of '!dg.any', expected a tensor of floats whose sizes are all numbers
  %y = dg.random_uniform {type = !dg.any}
  dg.return %y
}

// -----

dg.graph @forward(%k: tensor<i64>, %i: tensor<4xi64>) {
  // CHECK: error: 'dg.random_bits' op has word 4, expected 0 to 3
  %y = dg.random_bits %k, %i {to = f32, word = 4}
  dg.return %y
}

// -----

dg.graph @forward(%k: tensor<i64>, %i: tensor<4xi64>) {
  // CHECK: error: 'dg.random_bits' op gives 'i64', expected a type of floats
  %y = dg.random_bits %k, %i {to = i64}
  dg.return %y
}

// -----

dg.graph @forward(%k: tensor<i32>, %i: tensor<4xi64>) {
  // CHECK: error: 'dg.random_bits' op has an operand 'tensor<i32>', expected elements of type i64
  %y = dg.random_bits %k, %i {to = f32}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<5x3xf32>) {
  %r = dg.scan over(%a = %x) {
    // CHECK: error: 'dg.dropout' op is in the body of 'dg.scan', where every trip would draw the same numbers, expected it directly in a dg.graph
    %s = dg.dropout %a
    dg.return %s
  }
  dg.return %r
}
