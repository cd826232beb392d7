// A graph that is no chunk, a value that crosses a stage by its name, another type at the other side, a send without a receive, a receive without a
// send, and a sum that nothing adds to are errors.
// RUN: dg-opt %s --split-input-file --dg-verify-split --verify-diagnostics

// expected-error @+1 {{'dg.graph' op is no chunk after the split phase, expected program, stage and phase from --dg-split-stages}}
dg.graph @train(%x: tensor<4xf32>) typed {
  dg.return {names = []} : () -> ()
}

// -----

dg.graph @infer.0.forward(%x: tensor<4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  %h = dg.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  dg.return %h {names = ["h"]} : (tensor<4xf32>) -> ()
}
// expected-error @+1 {{reads 'h' of stage 0 by its name, expected a receive: it is on stage 1}}
dg.graph @infer.1.forward(%h: tensor<4xf32>) typed attributes {program = "infer", stage = 1 : i64, phase = 1 : i32} {
  dg.return %h {names = ["y"]} : (tensor<4xf32>) -> ()
}

// -----

dg.graph @train.0.forward(%x: tensor<4xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
  %h = dg.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  dg.return %h {names = ["h"]} : (tensor<4xf32>) -> ()
}
// expected-error @+1 {{reads 'h' as 'tensor<8xf32>', which was made as 'tensor<4xf32>'}}
dg.graph @train.0.backward(%h: tensor<8xf32>) typed attributes {program = "train", stage = 0 : i64, phase = 2 : i32} {
  dg.return {names = []} : () -> ()
}

// -----

dg.graph @infer.0.forward(%x: tensor<4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  // expected-error @+1 {{has no receive of channel 3 on stage 1}}
  dg.send %x {channel = 3 : i64, peer_stage = 1 : i64} : (tensor<4xf32>) -> ()
  dg.return {names = []} : () -> ()
}

// -----

dg.graph @infer.1.forward() typed attributes {program = "infer", stage = 1 : i64, phase = 1 : i32} {
  // expected-error @+1 {{of channel 3 has no send}}
  %h = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<4xf32>
  dg.return %h {names = ["y"]} : (tensor<4xf32>) -> ()
}

// -----

dg.graph @infer.0.forward(%x: tensor<4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  dg.send %x {channel = 3 : i64, peer_stage = 1 : i64} : (tensor<4xf32>) -> ()
  dg.return {names = []} : () -> ()
}
dg.graph @infer.1.forward() typed attributes {program = "infer", stage = 1 : i64, phase = 1 : i32} {
  // expected-error @+1 {{of channel 3 on stage 1 expects 'tensor<8xf32>' from stage 0, but stage 0 sends 'tensor<4xf32>' to stage 1}}
  %h = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<8xf32>
  dg.return %h {names = ["y"]} : (tensor<8xf32>) -> ()
}

// -----

dg.graph @infer.0.forward(%x: tensor<4xf32>) typed attributes {program = "infer", stage = 0 : i64, phase = 1 : i32} {
  dg.send %x {channel = 3 : i64, peer_stage = 1 : i64} : (tensor<4xf32>) -> ()
  dg.return {names = []} : () -> ()
}
dg.graph @infer.1.forward() typed attributes {program = "infer", stage = 1 : i64, phase = 1 : i32} {
  %h = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<4xf32>
  // expected-error @+1 {{of channel 3 is the second of its send}}
  %i = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<4xf32>
  dg.return %h, %i {names = ["y", "z"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
}

// -----

dg.graph @train.0.update() typed attributes {program = "train", stage = 0 : i64, phase = 3 : i32} {
  // expected-error @+1 {{reads 'sum', which nothing on its stage adds to as 'tensor<4xf32>'}}
  %s = dg.accumulated {accumulator = "sum"} : () -> tensor<4xf32>
  dg.return %s {names = ["loss"]} : (tensor<4xf32>) -> ()
}
