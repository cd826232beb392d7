// Places that do not fit their tensors are an error at the op, which says what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{'dg.gather' op has indices 'tensor<2xf32>', expected integers}}
  %y = dg.gather %x, %i
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'dg.gather' op has dimension 2 of 'tensor<4x5xf32>', expected 0 to 1}}
  %y = dg.gather %x, %i {dim = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'dg.gather_grad' op has gradient 'tensor<4x5xf32>' for indices 'tensor<2xi64>' along dimension 0, expected the shape of the indices there}}
  %y = dg.gather_grad %x, %i {size = 3}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<5x2xi64>) {
  // expected-error@+1 {{'dg.gather_elements' op has indices 'tensor<5x2xi64>' for 'tensor<4x5xf32>', expected as many dimensions, none larger but dimension 1}}
  %y = dg.gather_elements %x, %i {dim = 1}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2x5xi64>) {
  // expected-error@+1 {{'dg.scatter_elements' op has updates 'tensor<4x5xf32>' for input 'tensor<4x5xf32>' and indices 'tensor<2x5xi64>', expected the input's element type and the shape of the indices}}
  %y = dg.scatter_elements %x, %i, %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<4x5xi64>) {
  // expected-error@+1 {{'dg.scatter_elements' op has reduction "mean", expected none, add, mul, min or max}}
  %y = dg.scatter_elements %x, %i, %x {reduction = "mean"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>) {
  // expected-error@+1 {{'dg.gather_nd' op has input 'tensor<4x5xf32>' and indices 'tensor<2x3xi64>' with 0 batch dimensions, expected equal batch dimensions}}
  %y = dg.gather_nd %x, %i
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>) {
  // expected-error@+1 {{'dg.scatter_nd' op has updates 'tensor<4x5xf32>', expected 'tensor<2x5xf32>'}}
  %y = dg.scatter_nd %x, %i, %x
  dg.return %y
}

// -----

dg.graph @forward(%i: tensor<2xi64>) {
  // expected-error@+1 {{'dg.one_hot' op puts 'tensor<2xi64>' into a dimension 2 of size 3 of 'f32', expected dimension 0 to 1}}
  %y = dg.one_hot %i {depth = 3, dim = 2, type = f32}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x5xf32>, %i: tensor<4xi64>) {
  // expected-error@+1 {{'dg.reverse_sequence' op reverses 'tensor<4x5xf32>' by lengths 'tensor<4xi64>' with batch dimension 1, expected one length for each of dimension 0 or 1}}
  %y = dg.reverse_sequence %x, %i
  dg.return %y
}
