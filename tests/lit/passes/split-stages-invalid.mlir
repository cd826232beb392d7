// A graph whose ops have no stage is an error that names the pass to run first.
// RUN: dg-opt %s --dg-split-stages -verify-diagnostics

dg.graph @infer(%x: tensor<4x6xf32>) typed {
  %y = dg.relu %x {place = #dg.place<origin = 0, stage = 0>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@+1 {{'dg.gelu' op has no stage: run --dg-plan-graph first}}
  %z = dg.gelu %y {place = #dg.place<origin = 1>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %z {names = ["z"]} : (tensor<4x6xf32>) -> ()
}
