// An op without a stage or without a sharding for each operand and result, a sharding of another rank,
// one that has an axis twice, and one whose axis does not divide the dimension are errors.
// RUN: dg-opt %s --split-input-file --dg-verify-partition --verify-diagnostics

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{'dg.relu' op has no stage after the partition phase, expected one from --dg-plan-graph}}
  %y = dg.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has 1 shardings after the partition phase, expected one for each of its 1 operands and 1 results from --dg-assign-shardings}}
  %y = dg.relu %x {place = #dg.place<stage = 0, shardings = <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has a sharding of 1 dimensions for a 'tensor<8x6xf32>'}}
  %y = dg.relu %x {place = #dg.place<stage = 0, shardings = <["data"], []>, <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has the axis "data" twice in the sharding of a 'tensor<8x6xf32>', expected each axis at most once}}
  %y = dg.relu %x {place = #dg.place<stage = 0, shardings = <["data", ""], []>, <["data", ""], ["data"]>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

module attributes {dg.mesh = #dg.mesh<data = 3>} {
  dg.graph @infer(%x: tensor<8x6xf32>) typed {
    // expected-error @+1 {{has dimension 0 of a 'tensor<8x6xf32>' cut over data=3, expected a size that it divides}}
    %y = dg.relu %x {place = #dg.place<stage = 0, shardings = <["", ""], []>, <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
  }
}
