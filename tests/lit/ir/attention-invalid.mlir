// Heads, masks and angles that do not fit are an error at the op, which says what was found and expected.
// RUN: dg-opt %s --dg-deduce-types -split-input-file -verify-diagnostics

dg.graph @forward(%q: tensor<2x5x8xf32>, %k: tensor<2x5x6xf32>) {
  // expected-error@+1 {{'dg.attention' op has 4 heads of query 'tensor<2x5x8xf32>' and 3 of key 'tensor<2x5x6xf32>' and value 'tensor<2x5x6xf32>', expected heads of one width, in groups of equal size for each head of the key}}
  %y = dg.attention %q, %k, %k {heads = 4, kv_heads = 3}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %m: tensor<5x4xf32>) {
  // expected-error@+1 {{'dg.attention' op has mask 'tensor<5x4xf32>', expected booleans or the query's element type, and a shape that broadcasts to 'tensor<2x4x5x5xf32>'}}
  %y = dg.attention %q, %q, %q, %m {heads = 4}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'dg.attention' op has an offset or a window without `causal`, expected both or neither}}
  %y = dg.attention %q, %q, %q {heads = 4, window = 2}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'dg.attention' op has a window of 0, expected at least one token}}
  %y = dg.attention %q, %q, %q {heads = 4, causal, window = 0}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %c: tensor<5x1xf32>) {
  // expected-error@+1 {{'dg.rotary' op cuts 'tensor<2x5x8xf32>' into 3 heads, expected [batch, tokens, width] with a number that divides the width}}
  %y = dg.rotary %q, %c, %c {heads = 3}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %c: tensor<5x3xf32>) {
  // expected-error@+1 {{'dg.rotary' op turns 'tensor<2x5x8xf32>' with 2 heads by cosines 'tensor<5x3xf32>' and sines 'tensor<5x3xf32>', expected [tokens, pairs] or [batch, tokens, pairs] of at most half the head's width}}
  %y = dg.rotary %q, %c, %c {heads = 2}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %k: tensor<2x5x6xf32>) {
  // expected-error@+1 {{'dg.block_attention' op has 4 heads of the query and 3 of the key, expected a group of heads for each head of the key}}
  %y, %l = dg.block_attention %q, %k, %k {head_width = 2, scale = 0.5}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'dg.block_attention' op cuts widths of 8 and 8 into heads of 3, expected a number that divides both}}
  %y, %l = dg.block_attention %q, %q, %q {head_width = 3, scale = 0.5}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %k: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dg.block_attention' op is causal with 5 tokens of query and 6 of key, expected equally many, or an offset}}
  %y, %l = dg.block_attention %q, %k, %k {head_width = 4, scale = 0.5, causal}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %l: tensor<2x5x3xf32>) {
  // expected-error@+1 {{'dg.block_attention_grad' op has gradient 'tensor<2x5x8xf32>', logsumexp 'tensor<2x5x3xf32>' and row sums 'tensor<2x5x3xf32>', expected 'tensor<2x5x8xf32>' and twice 'tensor<2x5x2xf32>'}}
  %a, %b, %c = dg.block_attention_grad %q, %q, %q, %q, %l, %l {head_width = 4, scale = 0.5}
  dg.return %a
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>, %m: tensor<3x5xf32>) {
  // expected-error@+1 {{'dg.block_attention' op has mask 'tensor<3x5xf32>', expected booleans or the query's element type, and a shape that broadcasts to 'tensor<2x2x5x5xf32>'}}
  %y, %l = dg.block_attention %q, %q, %q, %m {head_width = 4, scale = 0.5}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'dg.block_attention' op has an offset or a window of 3, expected them with `causal`, and a window of one token at least}}
  %y, %l = dg.block_attention %q, %q, %q {head_width = 4, scale = 0.5, window = 3}
  dg.return %y
}

// -----

dg.graph @forward(%q: tensor<2x5x2x8xf32>, %c: tensor<5x5xf32>) {
  // expected-error@+1 {{'dg.rotate_pairs' op turns 'tensor<2x5x2x8xf32>' by cosines 'tensor<5x5xf32>' and sines 'tensor<5x5xf32>', expected floats [batch, tokens, heads, head width], and [tokens, pairs] or [batch, tokens, pairs] of at most half the head's width}}
  %y = dg.rotate_pairs %q, %c, %c
  dg.return %y
}
