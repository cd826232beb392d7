// A value without a static type, or an op without a number, after the shape phase is an error that names the pass.
// RUN: dg-opt %s --split-input-file --dg-verify-shapes --verify-diagnostics

dg.graph @infer(%x: tensor<4x6xf32>) typed {
  // expected-error @+1 {{'dg.relu' op has no number after the shape phase, expected one from --dg-number-ops}}
  %y = dg.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %y {names = ["y"], place = #dg.place<origin = 1>} : (tensor<4x6xf32>) -> ()
}

// -----

// expected-error @+1 {{'dg.graph' op has an argument of type '!dg.any' after the shape phase, expected a tensor of static shape from --dg-deduce-types}}
dg.graph @infer(%x: tensor<?x6xf32>) {
  dg.return %x {names = ["y"], place = #dg.place<origin = 0>}
}

// -----

// expected-error @+1 {{'dg.graph' op has an argument of type 'tensor<?x6xf32>' after the shape phase}}
dg.graph @infer(%x: tensor<?x6xf32>) typed {
  dg.return %x {names = ["y"], place = #dg.place<origin = 0>} : (tensor<?x6xf32>) -> ()
}
