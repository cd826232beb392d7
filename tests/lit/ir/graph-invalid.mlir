// A graph, parameter or attribute that cannot mean anything is rejected where it is written, with what was found and
// what was expected.
// RUN: dg-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{does not end with dg.return: every graph returns its results with it}}
dg.graph @forward(%x: tensor<2xf32>) {
  %y = dg.relu %x
}

// -----

// expected-error@+1 {{does not end with dg.return}}
dg.graph @forward() {
}

// -----

// expected-error@+1 {{input 0 ('x') has type 'f32', expected a ranked tensor}}
dg.graph @forward(%x: f32) {
  dg.return %x
}

// -----

// expected-error@+1 {{input 1 ('y') has type 'tensor<*xf32>', expected a ranked tensor}}
dg.graph @forward(%x: tensor<2xf32>, %y: tensor<*xf32>) {
  dg.return %x
}

// -----

// expected-error@+1 {{has 2 arguments but 1 names and 2 types}}
dg.graph @forward(%x: tensor<2xf32>, %y: tensor<2xf32>) attributes {input_names = ["x"]} {
  dg.return %x
}

// -----

dg.graph @forward() {
  %w = dg.parameter "fc.weight" tensor<2xf32> uniform 0.5
  // expected-error@+1 {{'fc.weight' is declared twice in this graph: use the value of the first declaration again}}
  %again = dg.parameter "fc.weight" tensor<2xf32> uniform 0.5
  dg.return %again
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'w' has type 'tensor<?x2xf32>', expected a tensor whose dimensions are all numbers}}
  %w = dg.parameter "w" tensor<?x2xf32> uniform 0.5
  dg.return %w
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'w' has type 'f32', expected a tensor whose dimensions are all numbers}}
  %w = dg.parameter "w" f32 uniform 0.5
  dg.return %w
}

// -----

dg.graph @forward() typed {
  // expected-error@+1 {{'w' is declared 'tensor<2xf32>' but used as 'tensor<3xf32>'}}
  %w = dg.parameter "w" tensor<2xf32> uniform 0.5 : tensor<3xf32>
  dg.return %w : (tensor<3xf32>) -> ()
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{found 'random', expected how the parameter starts: constant, uniform, normal or file}}
  %w = dg.parameter "w" tensor<2xf32> random 0.5
  dg.return %w
}

// -----

dg.graph @forward() {
  // expected-error@+2 {{unexpected decimal integer literal for a floating point value}}
  // expected-note@+1 {{add a trailing dot to make the literal a float}}
  %w = dg.parameter "w" tensor<2xf32> uniform 1
  dg.return %w
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'dg.foo' is unknown}}
  %y = dg.foo %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{use of undeclared SSA value name}}
  %y = dg.relu %z
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dg.relu' op requires a single operand}}
  %y = dg.relu %x, %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dg.add' op expected 2 operands, but found 1}}
  %y = dg.add %x
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dg.scale' op requires attribute 'factor'}}
  %y = dg.scale %x
  dg.return %y
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'dg.constant' op requires attribute 'type'}}
  %c = dg.constant {value = 1.0}
  dg.return %c
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected '<'}}
  %y = dg.relu %x {place = #dg.place}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+2 {{expected string}}
  // expected-error@+1 {{failed to parse DG_PlaceAttr parameter 'shardings'}}
  %y = dg.relu %x {place = #dg.place<shardings = <[data], []>>}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute}}
  %y = dg.attention %x, %x, %x {heads = "four"}
  dg.return %y
}

// -----

// Fractions are no strides: they must not silently become a stride of 1.
dg.graph @forward(%x: tensor<8x1x9x9xf32>) {
  %k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.3
  // expected-error@+1 {{attribute 'strides' failed to satisfy constraint: i64 dense array attribute}}
  %y = dg.conv2d %x, %k {strides = [2.0, 2.5]}
  dg.return %y
}

// -----

// An integer is no f64: it must not silently become the default.
dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{attribute 'scale' failed to satisfy constraint: 64-bit float attribute}}
  %y = dg.softmax %x {scale = 2}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{has no attribute 'caussal'}}
  %y = dg.softmax %x {caussal}
  dg.return %y
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dg.return' op}}
  dg.return %x
  dg.return %x
}

// -----

dg.graph @forward(%x: tensor<2xf32>) {
  // expected-error@+1 {{'dg.update' op}}
  dg.update %x {param = "nobody"}
  dg.return %x
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'dg.constant' op}}
  %c = dg.constant {value = 1.0, type = f32}
  dg.return %c
}

// -----

dg.graph @forward() {
  // expected-error@+1 {{'dg.literal' op has elements of type 'vector<2xf32>', expected a tensor of numbers, as dense<[1.0, 2.0]> : tensor<2xf32>}}
  %c = dg.literal {value = dense<[1.0, 2.0]> : vector<2xf32>}
  dg.return %c
}

// -----

// Data is fed by the names of inputs.
// expected-error@+1 {{'dg.graph' op has two inputs named 'x', expected different names: data is fed by them}}
dg.graph @forward(%x: tensor<2xf32>, %y: tensor<2xf32>) attributes {input_names = ["x", "x"]} {
  dg.return %x
}

// -----

dg.graph @train(%x: tensor<3xf32>) typed {
  %w = dg.parameter "w" tensor<2xf32> uniform 0.5 : tensor<2xf32>
  // expected-error@+1 {{'dg.update' op gives 'w' a value of type 'tensor<3xf32>', expected 'tensor<2xf32>', the type of its dg.parameter}}
  dg.update %x {param = "w"} : (tensor<3xf32>) -> ()
  dg.return
}

// -----

dg.graph @train(%x: tensor<2xf32>) typed {
  %w = dg.parameter "w" tensor<2xf32> uniform 0.5 : tensor<2xf32>
  dg.update %x {param = "w"} : (tensor<2xf32>) -> ()
  // expected-error@+1 {{'dg.update' op is the second of 'w' in this graph, expected at most one: a step leaves one value}}
  dg.update %x {param = "w"} : (tensor<2xf32>) -> ()
  dg.return
}
