// A graph whose ops have no shardings, or not one for each operand and result, is an error that names the pass to run
// first.
// RUN: dg-opt %s --dg-set-mesh=data=2 --dg-split-shards -split-input-file -verify-diagnostics

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error@+1 {{'dg.relu' op has no shardings: run --dg-assign-shardings first}}
  %y = dg.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  %y = dg.relu %x {place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  // expected-error@+1 {{'dg.return' op has no shardings: run --dg-assign-shardings first}}
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}
