// Operands that do not fit an op are an error at that op, which says what was found and what was expected, for every op
// family of a model.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<64x10xf32>) {
  %w = dg.parameter "w" tensor<20x12xf32> uniform 0.3
  // expected-error@+1 {{'dg.linear' op contracts 10 of input 'tensor<64x10xf32>' with 12 of weight 'tensor<20x12xf32>', expected equal sizes}}
  %y = dg.linear %x, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<64x10xf32>) {
  %w = dg.parameter "w" tensor<20x10xf32> uniform 0.3
  %b = dg.parameter "b" tensor<10xf32> uniform 0.3
  // expected-error@+1 {{'dg.linear' op has bias 'tensor<10xf32>', expected one of 20 elements, the first size of weight 'tensor<20x10xf32>'}}
  %y = dg.linear %x, %w, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<10xf32>) {
  %w = dg.parameter "w" tensor<20x10xf32> uniform 0.3
  // expected-error@+1 {{'dg.linear' op has input 'tensor<10xf32>' and weight 'tensor<20x10xf32>', expected an input of rank 2 or more}}
  %y = dg.linear %x, %w
  dg.return %y
}

// -----

dg.graph @forward(%a: tensor<4x5xf32>, %b: tensor<4x5xf32>) {
  // expected-error@+1 {{'dg.matmul' op contracts 5 of lhs 'tensor<4x5xf32>' with 4 of rhs 'tensor<4x5xf32>', expected equal sizes}}
  %y = dg.matmul %a, %b
  dg.return %y
}

// -----

dg.graph @forward(%a: tensor<4x5xf32>, %b: tensor<f32>) {
  // expected-error@+1 {{'dg.matmul' op has operands 'tensor<4x5xf32>' and 'tensor<f32>', expected two tensors of rank 1 or more and of the same element type, floats or integers}}
  %y = dg.matmul %a, %b
  dg.return %y
}

// -----

dg.graph @forward(%a: tensor<4x5xf32>, %b: tensor<5x4xf64>) {
  // expected-error@+1 {{expected two tensors of rank 1 or more and of the same element type, floats or integers}}
  %y = dg.matmul %a, %b
  dg.return %y
}

// -----

dg.graph @forward(%a: tensor<3x4x5xf32>, %b: tensor<2x5x4xf32>) {
  // expected-error@+1 {{'dg.matmul' op has operands 'tensor<3x4x5xf32>' and 'tensor<2x5x4xf32>', expected equal sizes, or 1, in front of the last two dimensions}}
  %y = dg.matmul %a, %b
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x6xf32>) {
  // expected-error@+1 {{'dg.attention' op cuts a width of 6 into 4 heads, expected a number that divides the width}}
  %y = dg.attention %q, %q, %q {heads = 4}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x6xf32>, %k: tensor<2x7x6xf32>) {
  // expected-error@+1 {{'dg.attention' op is causal with 5 tokens of query and 7 of key, expected equally many}}
  %y = dg.attention %q, %k, %k {heads = 2, causal}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x3x9x9xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  // expected-error@+1 {{'dg.conv2d' op has operands 'tensor<8x3x9x9xf32>' and 'tensor<4x1x5x5xf32>', expected [n, c, h, w] and [o, c, kh, kw] of one element type}}
  %y = dg.conv2d %x, %k
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x4x9xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  // expected-error@+1 {{'dg.conv2d' op has a kernel of 5 over a padded input of 4 in weight 'tensor<4x1x5x5xf32>' and input 'tensor<8x1x4x9xf32>', expected a kernel that fits}}
  %y = dg.conv2d %x, %k
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x9x9xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  // expected-error@+1 {{'dg.conv2d' op has strides array<i64: 0, 1> and padding array<i64: 0, 0>, expected two strides above 0 and two paddings of 0 or more}}
  %y = dg.conv2d %x, %k {strides = array<i64: 0, 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x9x9xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  %b = dg.parameter "b" tensor<5xf32> uniform 0.3
  // expected-error@+1 {{'dg.conv2d' op has bias 'tensor<5xf32>', expected one of 4 elements, the first size of weight 'tensor<4x1x5x5xf32>'}}
  %y = dg.conv2d %x, %k, %b
  dg.return %y
}

// -----

dg.graph @forward(%dy: tensor<8x4x5x5xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  // expected-error@+1 {{'dg.conv2d_input_grad' op has gradient 'tensor<8x4x5x5xf32>', expected 6 at dimension 2 for an input of 10 and a kernel of 5}}
  %y = dg.conv2d_input_grad %dy, %k {input_size = array<i64: 10, 9>}
  dg.return %y
}

// -----

dg.graph @forward(%dy: tensor<8x4x5x5xf32>, %x: tensor<8x1x9x9xf32>) {
  // expected-error@+1 {{'dg.conv2d_weight_grad' op has kernel_size array<i64: 5>, expected [kh, kw]}}
  %y = dg.conv2d_weight_grad %dy, %x {kernel_size = array<i64: 5>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{'dg.max_pool2d' op has input 'tensor<8x4xf32>', expected floats (dg.cast makes them) in [n, c, h, w]}}
  %y = dg.max_pool2d %x {kernel = array<i64: 2, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x4x1xf32>) {
  // expected-error@+1 {{'dg.max_pool2d' op has a kernel of 2 over 1 elements of input 'tensor<8x1x4x1xf32>', expected a kernel that fits}}
  %y = dg.max_pool2d %x {kernel = array<i64: 2, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x4x4xf32>) {
  // expected-error@+1 {{'dg.max_pool2d' op has kernel array<i64: 2>, expected two sizes, and two strides or none, all above 0}}
  %y = dg.max_pool2d %x {kernel = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<8x1x4x4xf32>) {
  // expected-error@+1 {{'dg.max_pool2d_grad' op has gradient 'tensor<8x1x4x4xf32>', expected the type of the pooled input, 'tensor<8x1x2x2xf32>'}}
  %y = dg.max_pool2d_grad %x, %x {kernel = array<i64: 2, 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<64x20xf32>, %b: tensor<64xf32>) {
  // expected-error@+1 {{'dg.add' op has operands 'tensor<64x20xf32>' and 'tensor<64xf32>', expected equal sizes, or 1, counted from the last dimension}}
  %y = dg.add %x, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<64x20xf32>, %b: tensor<20xf64>) {
  // expected-error@+1 {{'dg.mul' op has operands 'tensor<64x20xf32>' and 'tensor<20xf64>', expected equal element types}}
  %y = dg.mul %x, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.reshape' op gives 'tensor<4x6xf32>' the shape array<i64: 5, 5>, expected one of 24 elements, as the input has, found 25}}
  %y = dg.reshape %x {shape = array<i64: 5, 5>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.reshape' op gives 'tensor<4x6xf32>' the shape array<i64: 4294967296, 4294967296>, expected one whose elements can be counted}}
  %y = dg.reshape %x {shape = array<i64: 4294967296, 4294967296>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{the shape array<i64: 5, -1>, expected a shape whose sizes divide the 24 elements of the input}}
  %y = dg.reshape %x {shape = array<i64: 5, -1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{the shape array<i64: -1, -1>, expected at most one -1}}
  %y = dg.reshape %x {shape = array<i64: -1, -1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{the shape array<i64: 2, 2, 0>, expected 0 only where the input has a dimension to keep}}
  %y = dg.reshape %x {shape = array<i64: 2, 2, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{the shape array<i64: -2, 12>, expected sizes above 0, 0 to keep, or one -1 to deduce}}
  %y = dg.reshape %x {shape = array<i64: -2, 12>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.transpose' op permutes 'tensor<4x6xf32>' by array<i64: 0, 0>, expected each of 0 to 1 once}}
  %y = dg.transpose %x {permutation = array<i64: 0, 0>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.expand' op expands 'tensor<4x6xf32>' to array<i64: 4>, expected sizes that are equal, or 1 in the input, counted from the last dimension}}
  %y = dg.expand %x {shape = array<i64: 4>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.reduce_sum' op reduces 'tensor<4x6xf32>' over dimensions array<i64: 2>, expected different numbers from 0 to 1}}
  %y = dg.reduce_sum %x {dims = array<i64: 2>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.softmax' op is causal over 'tensor<4x6xf32>', expected last dimensions of equal size: (token, seen token)}}
  %y = dg.softmax %x {causal}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<f32>) {
  // expected-error@+1 {{'dg.log_softmax' op has operand 'tensor<f32>', expected floats (dg.cast makes them) and a dimension}}
  %y = dg.log_softmax %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  %w = dg.parameter "w" tensor<4xf32> constant 1.0
  // expected-error@+1 {{'dg.layer_norm' op has weight 'tensor<4xf32>' for input 'tensor<4x6xf32>', expected floats, and one element for each of the input's last dimension}}
  %y = dg.layer_norm %x, %w, %w
  dg.return %y
}

// -----

dg.graph @forward(%i: tensor<4xf32>) {
  %t = dg.parameter "table" tensor<10x6xf32> normal 0.02
  // expected-error@+1 {{'dg.embedding' op has indices 'tensor<4xf32>', expected integers}}
  %y = dg.embedding %t, %i
  dg.return %y
}

// -----

dg.graph @forward(%i: tensor<4xi32>) {
  %t = dg.parameter "table" tensor<10xf32> normal 0.02
  // expected-error@+1 {{'dg.embedding' op has table 'tensor<10xf32>', expected [rows, width]}}
  %y = dg.embedding %t, %i
  dg.return %y
}

// -----

dg.graph @forward(%i: tensor<4xi32>) {
  %t = dg.parameter "table" tensor<10x6xf32> normal 0.02
  // expected-error@+1 {{'dg.embedding' op has padding 10 and table 'tensor<10x6xf32>', expected one of its rows, from 0}}
  %y = dg.embedding %t, %i {padding = 10 : i64}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>, %i: tensor<5xi32>) {
  // expected-error@+1 {{'dg.pick' op has rows 'tensor<4x6xf32>' and indices 'tensor<5xi32>', expected one index for each row}}
  %y = dg.pick %x, %i
  dg.return %y
}

// -----

dg.graph @loss(%x: tensor<4x6xf32>, %y: tensor<4x1xi32>) {
  // expected-error@+1 {{'dg.nll' op has prediction 'tensor<4x6xf32>' and target 'tensor<4x1xi32>', expected [samples, …, classes] and integers of shape [samples, …]}}
  %loss = dg.nll %x, %y
  dg.return %loss
}

// -----

dg.graph @loss(%x: tensor<4x6xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dg.cross_entropy' op has prediction 'tensor<4x6xf32>' and target 'tensor<4xf32>', expected [samples, …, classes] and integers of shape [samples, …]}}
  %loss = dg.cross_entropy %x, %y
  dg.return %loss
}

// -----

dg.graph @loss(%x: tensor<4x1xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dg.mse' op has prediction 'tensor<4x1xf32>' and target 'tensor<4xf32>', expected equal types [samples, …]}}
  %loss = dg.mse %x, %y
  dg.return %loss
}

// -----

dg.graph @forward(%a: tensor<4x5xf32>, %b: tensor<5x4xf32>) {
  // expected-error@+1 {{'dg.matmul' op multiplies elements of type 'f32' to 'f32', expected f16 or bf16 to f32}}
  %y = dg.matmul %a, %b {to = f32}
  dg.return %y
}

// -----

dg.graph @forward(%p: tensor<4xf32>, %g: tensor<4xf32>, %s: tensor<1xf32>) {
  // expected-error@+1 {{'dg.sgd' op has the guard 'tensor<1xf32>', expected an f32 scalar}}
  %y = dg.sgd %p, %g, %s
  dg.return %y
}

// -----

dg.graph @forward(%p: tensor<4xf32>, %g: tensor<5xf32>) {
  // expected-error@+1 {{'dg.sgd' op has parameter 'tensor<4xf32>' and operand 'tensor<5xf32>', expected gradient and state of the parameter's type}}
  %y = dg.sgd %p, %g
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.transpose' op permutes 'tensor<4x6xf32>' by array<i64: 0, 2>, expected each of 0 to 1 once}}
  %y = dg.transpose %x {permutation = array<i64: 0, 2>}
  dg.return %y
}

// -----

// What the split phase inserts has no place in a model.
dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.all_reduce' op}}
  %y = dg.all_reduce %x {axis = "data"}
  dg.return %y
}

// -----

// Nor what the other phases make, with or without results, also in the bodies of a model's ops.
dg.graph @forward(%x: tensor<4x6xf32>) {
  %w = dg.parameter "w" tensor<6xf32> uniform 0.1
  %y = dg.add %x, %w
  // expected-error@+1 {{'dg.update' op comes only from the compiler's own later phases: a model cannot contain it}}
  dg.update %w {param = "w"}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.send' op comes only from the compiler's own later phases}}
  dg.send %x {channel = 0, peer_stage = 1}
  dg.return %x
}

// -----

dg.graph @forward(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dg.accumulate' op comes only from the compiler's own later phases}}
  dg.accumulate %x {accumulator = "sum"}
  dg.return %x
}

// -----

dg.graph @forward(%c: tensor<i1>, %x: tensor<4x6xf32>) {
  %r = dg.if %c with(%a = %x) {
    // expected-error@+1 {{'dg.accumulate' op comes only from the compiler's own later phases}}
    dg.accumulate %a {accumulator = "sum"}
    dg.return %a
  } else {
    dg.return %a
  }
  dg.return %r
}

// -----

// Names under which the runtime feeds, or the optimizer keeps, something else.
// expected-error@+1 {{'dg.graph' op has an input named "sample_weight", under which every job is fed something else: give it another name}}
dg.graph @loss(%x: tensor<4xf32>, %sample_weight: tensor<4xf32>) {
  %loss = dg.mse %x, %sample_weight
  dg.return %loss
}

// -----

// expected-error@+1 {{has an input named "sample_index"}}
dg.graph @forward(%sample_index: tensor<4xf32>) {
  dg.return %sample_index
}

// -----

dg.graph @loss(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dg.parameter' op has the name "loss_scale", under which training in f16 keeps its loss scale: give it another name}}
  %w = dg.parameter "loss_scale" tensor<f32> constant 0.5
  %p = dg.mul %x, %w
  %loss = dg.mse %p, %y
  dg.return %loss
}

// -----

// Ops that are made of others take no more than those do.
dg.graph @forward(%x: tensor<2x1x4x4xf32>, %w: tensor<3x1x2x2xf32>, %b: tensor<3xf64>) {
  // expected-error@+1 {{'dg.conv2d' op has bias 'tensor<3xf64>' and input 'tensor<2x1x4x4xf32>', expected one element type}}
  %y = dg.conv2d %x, %w, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x1x4xf32>, %w: tensor<3x1x2xf32>, %b: tensor<3xf64>) {
  // expected-error@+1 {{'dg.conv' op has bias 'tensor<3xf64>' and input 'tensor<2x1x4xf32>', expected one element type}}
  %y = dg.conv %x, %w, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x1x4xf32>, %w: tensor<1x3x2xf32>, %b: tensor<3xf64>) {
  // expected-error@+1 {{'dg.conv_transpose' op has bias 'tensor<3xf64>' and input 'tensor<2x1x4xf32>', expected one element type}}
  %y = dg.conv_transpose %x, %w, %b
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi32>) {
  // expected-error@+1 {{'dg.reduce_log_sum' op has input 'tensor<2x4xi32>', expected floats (dg.cast makes them)}}
  %y = dg.reduce_log_sum %x {dims = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi32>) {
  // expected-error@+1 {{'dg.reduce_log_sum_exp' op has input 'tensor<2x4xi32>', expected floats (dg.cast makes them)}}
  %y = dg.reduce_log_sum_exp %x {dims = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x3xi32>, %w: tensor<3xi32>) {
  // expected-error@+1 {{'dg.batch_norm' op has input 'tensor<2x3xi32>', expected floats (dg.cast makes them) in [n, c, …]}}
  %y = dg.batch_norm %x, %w, %w, %w, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4x3xi32>, %w: tensor<4xi32>) {
  // expected-error@+1 {{'dg.group_norm' op has input 'tensor<2x4x3xi32>', expected floats (dg.cast makes them)}}
  %y = dg.group_norm %x, %w, %w {groups = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4x3xi32>, %w: tensor<4xi32>) {
  // expected-error@+1 {{'dg.instance_norm' op has input 'tensor<2x4x3xi32>', expected floats (dg.cast makes them)}}
  %y = dg.instance_norm %x, %w, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi32>, %w: tensor<4xi32>) {
  // expected-error@+1 {{'dg.rms_norm' op has input 'tensor<2x4xi32>', expected floats (dg.cast makes them)}}
  %y = dg.rms_norm %x, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi32>) {
  // expected-error@+1 {{'dg.mean_variance_norm' op has input 'tensor<2x4xi32>', expected floats (dg.cast makes them)}}
  %y = dg.mean_variance_norm %x {dims = array<i64: 1>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4x3xi32>) {
  // expected-error@+1 {{'dg.lrn' op has input 'tensor<2x4x3xi32>', expected floats (dg.cast makes them)}}
  %y = dg.lrn %x {size = 3}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4x3xf32>) {
  // expected-error@+1 {{'dg.lrn' op has input 'tensor<2x4x3xf32>' and size 99999999 : i64, expected [n, c, …] and a size from 1 to 16777216}}
  %y = dg.lrn %x {size = 99999999}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<1x1x5000x5000xf32>) {
  // expected-error@+1 {{'dg.global_max_pool' op has input 'tensor<1x1x5000x5000xf32>', expected at most 16777216 places: one window is over all of them}}
  %y = dg.global_max_pool %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi1>, %w: tensor<3x4xi1>) {
  // expected-error@+1 {{'dg.linear' op has input 'tensor<2x4xi1>', expected floats or integers (dg.cast makes them)}}
  %y = dg.linear %x, %w
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2x4xi1>, %w: tensor<4x3xi1>) {
  // expected-error@+1 {{'dg.einsum' op has operands of 'tensor<2x4xi1>', expected floats or integers (dg.cast makes them)}}
  %y = dg.einsum %x, %w {equation = "ij,jk->ik"}
  dg.return %y
}

// -----

dg.graph @loss(%x: tensor<2x4xi64>, %y: tensor<2x4xi64>) {
  // expected-error@+1 {{'dg.mse' op has prediction 'tensor<2x4xi64>', expected floats (dg.cast makes them)}}
  %loss = dg.mse %x, %y
  dg.return %loss
}

// -----

dg.graph @loss(%x: tensor<2x0xf32>, %y: tensor<2xi32>) {
  // expected-error@+1 {{'dg.cross_entropy' op has prediction 'tensor<2x0xf32>', expected at least one class}}
  %loss = dg.cross_entropy %x, %y
  dg.return %loss
}

// -----

dg.graph @forward(%x: tensor<2x0xf32>, %y: tensor<2xi32>) {
  // expected-error@+1 {{'dg.pick' op has rows of 0 classes, expected at least one}}
  %p = dg.pick %x, %y
  dg.return %p
}
