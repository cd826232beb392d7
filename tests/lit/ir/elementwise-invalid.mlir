// Every rejection of an elementwise op says what was found and what was expected.
// RUN: dg-opt %s --dg-deduce-types --split-input-file --verify-diagnostics

dg.graph @bools(%x: tensor<4xi1>) {
  // expected-error @below {{'dg.add' op has an operand 'tensor<4xi1>', expected elements that are floats or integers}}
  %y = dg.add %x, %x
  dg.return %y
}

// -----

dg.graph @integers(%x: tensor<4xi32>) {
  // expected-error @below {{'dg.sin' op has an operand 'tensor<4xi32>', expected elements that are floats}}
  %y = dg.sin %x
  dg.return %y
}

// -----

dg.graph @floats(%x: tensor<4xf32>) {
  // expected-error @below {{'dg.bit_and' op has an operand 'tensor<4xf32>', expected elements that are integers}}
  %y = dg.bit_and %x, %x
  dg.return %y
}

// -----

dg.graph @not_bools(%x: tensor<4xf32>) {
  // expected-error @below {{'dg.logical_or' op has an operand 'tensor<4xf32>', expected elements that are bools (i1)}}
  %y = dg.logical_or %x, %x
  dg.return %y
}

// -----

dg.graph @predicate(%x: tensor<4xf32>) {
  // expected-error @below {{'dg.compare' op has the predicate "below", expected eq, ne, lt, le, gt or ge}}
  %y = dg.compare %x, %x {predicate = "below"}
  dg.return %y
}

// -----

dg.graph @condition(%x: tensor<4xf32>) {
  // expected-error @below {{'dg.select' op has the condition 'tensor<4xf32>', expected bools (i1)}}
  %y = dg.select %x, %x, %x
  dg.return %y
}

// -----

dg.graph @two_types(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @below {{'dg.select' op has operands 'tensor<4xf32>' and 'tensor<4xf64>', expected equal element types}}
  %z = dg.select %c, %x, %y
  dg.return %z
}

// -----

dg.graph @target(%x: tensor<4xf32>) {
  // expected-error @below {{'dg.cast' op casts to 'i7', expected one of f32, f64, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 and ui64}}
  %y = dg.cast %x {to = i7}
  dg.return %y
}
