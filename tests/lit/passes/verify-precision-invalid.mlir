// A cast of a type to itself, and one that undoes the cast before it, are errors.
// RUN: dg-opt %s --split-input-file --dg-verify-precision --verify-diagnostics

dg.graph @infer(%x: tensor<6xf32>) typed {
  // expected-error @+1 {{'dg.cast' op casts 'f32' to itself after the precision phase}}
  %h = dg.cast %x {to = f32} : (tensor<6xf32>) -> tensor<6xf32>
  dg.return %h {names = ["y"]} : (tensor<6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<6xbf16>) typed {
  %f = dg.cast %x {to = f32} : (tensor<6xbf16>) -> tensor<6xf32>
  // expected-error @+1 {{'dg.cast' op narrows what was widened in the same phase, expected the value before both casts}}
  %h = dg.cast %f {to = bf16} : (tensor<6xf32>) -> tensor<6xbf16>
  dg.return %h {names = ["y"]} : (tensor<6xbf16>) -> ()
}
