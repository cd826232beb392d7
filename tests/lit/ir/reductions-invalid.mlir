// Every rejection of a reduction, an op along one dimension, a product or an einsum says what was found and what was expected.
// RUN: dg-opt %s --dg-deduce-types --split-input-file --verify-diagnostics

dg.graph @dims(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.reduce_max' op reduces 'tensor<4x6xf32>' over dimensions array<i64: 1, 1>, expected different numbers from 0 to 1}}
  %y = dg.reduce_max %x {dims = array<i64: 1, 1>}
  dg.return %y
}

// -----

dg.graph @axis(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.cumsum' op works along axis 2 of 'tensor<4x6xf32>', expected one from -2 to 1}}
  %y = dg.cumsum %x {axis = 2}
  dg.return %y
}

// -----

dg.graph @empty(%x: tensor<4x0xf32>) {
  // expected-error @below {{'dg.arg_max' op looks along axis 1 of 'tensor<4x0xf32>', expected at least one element there}}
  %y = dg.arg_max %x
  dg.return %y
}

// -----

dg.graph @k(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.top_k' op takes 7 elements along axis 1 of 'tensor<4x6xf32>', expected 0 to 6}}
  %v, %i = dg.top_k %x {k = 7}
  dg.return %v
}

// -----

dg.graph @shapes(%x: tensor<4x6xf32>, %i: tensor<4x5xi64>) {
  // expected-error @below {{'dg.top_k_grad' op has gradients 'tensor<4x6xf32>' and indices 'tensor<4x5xi64>', expected equal shapes}}
  %g = dg.top_k_grad %x, %i {size = 9}
  dg.return %g
}

// -----

dg.graph @softmax(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.log_softmax' op works along axis -3 of 'tensor<4x6xf32>', expected one from -2 to 1}}
  %y = dg.log_softmax %x {axis = -3}
  dg.return %y
}

// -----

dg.graph @causal(%x: tensor<6x6xf32>) {
  // expected-error @below {{'dg.softmax' op is causal along axis 0, expected no axis: tokens are in the last dimension}}
  %y = dg.softmax %x {axis = 0, causal}
  dg.return %y
}

// -----

dg.graph @terms(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.einsum' op has the equation "ij,jk->ik", expected as many terms before -> as operands (1)}}
  %y = dg.einsum %x {equation = "ij,jk->ik"}
  dg.return %y
}

// -----

dg.graph @letters(%x: tensor<4x6xf32>) {
  // expected-error @below {{'dg.einsum' op has the equation "ijk->i", expected a letter for each of the 2 dimensions of 'ijk', or one ... for some of them}}
  %y = dg.einsum %x {equation = "ijk->i"}
  dg.return %y
}

// -----

dg.graph @diagonal(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected one size for 'i' in 'ii', found 2 and 3}}
  %y = dg.einsum %x {equation = "ii->i"}
  dg.return %y
}

// -----

dg.graph @sizes(%x: tensor<4x6xf32>) {
  // expected-error @below {{expected one size for 'j', found 6 and 4}}
  %y = dg.einsum %x, %x {equation = "ij,jk->ik"}
  dg.return %y
}

// -----

dg.graph @result(%x: tensor<4x6xf32>) {
  // expected-error @below {{expected after -> letters of the operands, each once, found 'ik'}}
  %y = dg.einsum %x {equation = "ij->ik"}
  dg.return %y
}

// -----

dg.graph @bools(%x: tensor<6x6xi1>) {
  // expected-error @below {{'dg.matmul' op has operands 'tensor<6x6xi1>' and 'tensor<6x6xi1>', expected two tensors of rank 1 or more and of the same element type, floats or integers}}
  %y = dg.matmul %x, %x
  dg.return %y
}
