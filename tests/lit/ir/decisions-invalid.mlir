// Decisions that no pass may write are errors where they are read: an axis, a value or a dimension that does not exist, a size that
// the axis does not divide, another kind of attribute, and one in the wrong place.
// RUN: dg-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{mesh has an axis 'expert', expected data, tensor or pipe}}
module attributes {dg.mesh = #dg.mesh<expert = 2>} {}

// -----

// expected-error @+1 {{mesh has the axis 'data' twice, expected each axis at most once}}
module attributes {dg.mesh = #dg.mesh<data = 2, data = 4>} {}

// -----

// expected-error @+1 {{mesh has pipe=0, expected a size from 1 to 1048576}}
module attributes {dg.mesh = #dg.mesh<data = 2, pipe = 0>} {}

// -----

// expected-error @+1 {{mesh has 2097152 ranks, expected at most 1048576}}
module attributes {dg.mesh = #dg.mesh<data = 2048, tensor = 1024>} {}

// -----

// expected-error @+1 {{has dg.mesh = {data = 2 : i64}, expected a mesh, as #dg.mesh<data = 2, tensor = 1, pipe = 1>}}
module attributes {dg.mesh = {data = 2 : i64}} {}

// -----

// expected-error @+1 {{has "p" in dg.precision, expected an array of #dg.precision}}
module attributes {dg.precision = ["p"]} {}

// -----

// expected-error @+1 {{precision of an op is 'i32', expected a type of floats}}
module attributes {dg.precision = [#dg.precision<"p", "matmul", i32, "why">]} {}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has dg.mesh, expected it on a module only}}
  %y = dg.relu %x {dg.mesh = #dg.mesh<data = 2>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has dg.cut = {dim = 1 : i64, result = 0 : i64}, expected a cut, as #dg.cut<result 0, dim 1> or #dg.cut<whole>}}
  %y = dg.relu %x {dg.cut = {dim = 1 : i64, result = 0 : i64}} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{cut is of 'input', expected whole, operand or result}}
  %y = dg.relu %x {dg.cut = #dg.cut<input 0, dim 1>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{cut names dimension -1 of result 0, expected numbers from 0}}
  %y = dg.relu %x {dg.cut = #dg.cut<result 0, dim -1>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{is to be cut along operand 5, expected one of its 1 operands}}
  %y = dg.relu %x {dg.cut = #dg.cut<operand 5, dim 0>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{is to be cut along dimension 7 of result 0, expected one of the 2 of a 'tensor<8x6xf32>'}}
  %y = dg.relu %x {dg.cut = #dg.cut<result 0, dim 7>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

module attributes {dg.mesh = #dg.mesh<tensor = 4>} {
  dg.graph @infer(%x: tensor<8x6xf32>) typed {
    // expected-error @+1 {{is to be cut along dimension 1 of result 0, a 'tensor<8x6xf32>', over tensor=4: expected a size that it divides}}
    %y = dg.relu %x {dg.cut = #dg.cut<result 0, dim 1>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
  }
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{has dg.recompute = 1 : i64, expected no value}}
  %y = dg.relu %x {dg.recompute = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{of the phase update has dg.recompute, expected it on forward ops only}}
  %y = dg.relu %x {dg.recompute, place = #dg.place<phase = update>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{place has stage -2, expected the number of a stage, or -1 for none}}
  %y = dg.relu %x {place = #dg.place<stage = -2>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+1 {{place has origin -7, expected the number of an op, or -1 for none}}
  %y = dg.relu %x {place = #dg.place<origin = -7>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+2 {{sharding has the axis "expert", expected "data" or "tensor"}}
  // expected-error @+1 {{failed to parse DG_PlaceAttr parameter 'shardings'}}
  %y = dg.relu %x {place = #dg.place<shardings = <["expert", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}

// -----

dg.graph @infer(%x: tensor<8x6xf32>) typed {
  // expected-error @+2 {{sharding has the axis "pipe", expected "data" or "tensor"}}
  // expected-error @+1 {{failed to parse DG_PlaceAttr parameter 'shardings'}}
  %y = dg.relu %x {place = #dg.place<shardings = <["", ""], ["pipe"]>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}
