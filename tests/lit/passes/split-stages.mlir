// Each stage and phase with work becomes one chunk. Between stages every send has one receive of its channel, stage and
// type; within a stage saved values go by name; with several micro-batches gradients and losses are accumulated for an
// update of its own, with one the update is part of the backward chunk.
// RUN: dg-opt %s --dg-split-stages=microbatches=4 | FileCheck %s --check-prefixes=CHECK,MANY --implicit-check-not='dg.graph @train('
// RUN: dg-opt %s --dg-split-stages=microbatches=1 | FileCheck %s --check-prefixes=CHECK,ONE --implicit-check-not=update. --implicit-check-not=dg.accumulate
// RUN: dg-opt %s --dg-mark-weight-gradients --dg-split-stages=microbatches=4 | FileCheck %s --check-prefix=WEIGHTS
// RUN: dg-opt %s --dg-split-stages="microbatches=4 stages=1" | FileCheck %s --check-prefix=PARTS --implicit-check-not=dg.send --implicit-check-not=dg.receive

// Gradients of weights are chunks of their own, after what is sent on.
// WEIGHTS: dg.graph @train.1.backward(
// WEIGHTS: dg.send
// WEIGHTS: dg.graph @train.1.backward.weights(
// WEIGHTS-SAME: weight_gradients
// WEIGHTS-NOT: dg.send
// WEIGHTS: dg.accumulate
// WEIGHTS: dg.graph @train.0.backward(
// WEIGHTS: dg.graph @train.0.backward.weights(

// Two parts of the model on one stage hand values over by name, and have one update.
// PARTS: dg.graph @train.0.forward(
// PARTS: dg.return {{.*}}names = ["r/relu"]
// PARTS: dg.graph @train.0.forward.1(
// PARTS-SAME: input_names = ["r/relu"], part = 1 : i64
// PARTS: dg.graph @train.0.backward.1(
// PARTS: dg.return {{.*}}names = ["dr/mul"]
// PARTS: dg.graph @train.0.backward(
// PARTS: dg.graph @train.0.update(
// PARTS: param = "w1"
// PARTS: param = "w2"

dg.graph @train(%x: tensor<4x6xf32>) typed {
  %w1 = dg.parameter "w1" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<6xf32>
  %w2 = dg.parameter "w2" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 1, stage = 1>} : tensor<6xf32>
  %h = dg.mul %x, %w1 {place = #dg.place<label = "h", origin = 2, stage = 0>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %r = dg.relu %h {place = #dg.place<label = "r", origin = 3, stage = 0>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = dg.mul %r, %w2 {place = #dg.place<label = "p", origin = 4, stage = 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %loss = dg.reduce_sum %p {dims = array<i64: 0, 1>, place = #dg.place<label = "loss", origin = 5, stage = 1>} : (tensor<4x6xf32>) -> tensor<f32>
  %one = dg.constant {value = 1.0, type = tensor<4x6xf32>, place = #dg.place<origin = 5, phase = backward, stage = 1>} : () -> tensor<4x6xf32>
  %dp = dg.mul %one, %p {place = #dg.place<label = "dp", origin = 5, phase = backward, stage = 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %dr = dg.mul %dp, %w2 {place = #dg.place<label = "dr", origin = 4, phase = backward, stage = 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %q = dg.mul %dp, %r {place = #dg.place<origin = 4, phase = backward, stage = 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %dw2 = dg.reduce_sum %q {dims = array<i64: 0>, place = #dg.place<label = "dw2", origin = 4, phase = backward, stage = 1>} : (tensor<4x6xf32>) -> tensor<6xf32>
  %dh = dg.relu_grad %dr, %r {place = #dg.place<label = "dh", origin = 3, phase = backward, stage = 0>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = dg.mul %dh, %x {place = #dg.place<origin = 2, phase = backward, stage = 0>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %dw1 = dg.reduce_sum %s {dims = array<i64: 0>, place = #dg.place<label = "dw1", origin = 2, phase = backward, stage = 0>} : (tensor<4x6xf32>) -> tensor<6xf32>
  %n1 = dg.sgd %w1, %dw1 {place = #dg.place<label = "w1", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n1 {param = "w1", place = #dg.place<label = "w1", origin = 0, phase = update, stage = 0>} : (tensor<6xf32>) -> ()
  %n2 = dg.sgd %w2, %dw2 {place = #dg.place<label = "w2", origin = 1, phase = update, stage = 1>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n2 {param = "w2", place = #dg.place<label = "w2", origin = 1, phase = update, stage = 1>} : (tensor<6xf32>) -> ()
  dg.return %loss {names = ["loss"]} : (tensor<f32>) -> ()
}

// The input goes where it is used; the activation leaves by a send and, for the backward chunk, by name.
// CHECK-LABEL: dg.graph @train.0.forward(
// CHECK-SAME: input_names = ["x"], phase = 1 : i32, program = "train", stage = 0 : i64
// CHECK: dg.parameter "w1"
// CHECK: %[[R:.+]] = dg.relu
// CHECK: dg.send %[[R]] {channel = [[DOWN:[0-9]+]] : i64, peer_stage = 1 : i64{{.*}} : (tensor<4x6xf32>) -> ()
// CHECK: dg.return %[[R]] {names = ["r/relu"]}

// What was received is saved for the backward chunk under the same name on this stage.
// CHECK-LABEL: dg.graph @train.1.forward(
// CHECK-SAME: input_names = [], phase = 1 : i32, program = "train", stage = 1 : i64
// CHECK: dg.parameter "w2"
// CHECK: %[[IN:.+]] = dg.receive {channel = [[DOWN]] : i64, peer_stage = 0 : i64{{.*}} : () -> tensor<4x6xf32>
// CHECK: %[[P:.+]] = dg.mul %[[IN]]
// CHECK: %[[LOSS:.+]] = dg.reduce_sum
// MANY: dg.accumulate %[[LOSS]] {accumulator = "[[SUM:.+]]", place
// MANY: dg.return %[[P]], %[[IN]] {names = ["p/mul", "r/relu"]}
// ONE: dg.return %[[P]], %[[IN]], %[[LOSS]] {names = ["p/mul", "r/relu", "loss"]}

// The gradient goes up; the parameter is read again, not saved; the constant is made where it is used.
// CHECK-LABEL: dg.graph @train.1.backward(
// CHECK-SAME: input_names = ["p/mul", "r/relu"], phase = 2 : i32, program = "train", stage = 1 : i64
// CHECK-DAG: dg.parameter "w2"
// CHECK-DAG: dg.constant
// CHECK: dg.send {{.*}}channel = [[UP:[0-9]+]] : i64, peer_stage = 0 : i64
// MANY: dg.accumulate {{.*}}accumulator = "[[SUM2:.+]]", place
// MANY-NOT: dg.sgd
// MANY: dg.return {names = []}
// ONE: dg.sgd
// ONE: dg.update {{.*}}param = "w2"
// ONE: dg.return {names = []}

// CHECK-LABEL: dg.graph @train.0.backward(
// CHECK-SAME: input_names = ["r/relu", "x"]
// CHECK: dg.receive {channel = [[UP]] : i64, peer_stage = 1 : i64{{.*}} : () -> tensor<4x6xf32>
// MANY: dg.accumulate {{.*}}accumulator = "[[SUM1:.+]]", place
// ONE: dg.sgd
// ONE: dg.update {{.*}}param = "w1"

// MANY-LABEL: dg.graph @train.0.update(
// MANY-SAME: input_names = [], phase = 3 : i32, program = "train", stage = 0 : i64
// MANY: %[[G:.+]] = dg.accumulated {accumulator = "[[SUM1]]"{{.*}} -> tensor<6xf32>
// MANY: %[[N:.+]] = dg.sgd %{{.+}}, %[[G]]
// MANY: dg.update %[[N]] {param = "w1"
// MANY-LABEL: dg.graph @train.1.update(
// MANY: dg.accumulated {accumulator = "[[SUM2]]"
// MANY: dg.update {{.*}}param = "w2"
// MANY: %[[TOTAL:.+]] = dg.accumulated {accumulator = "[[SUM]]"{{.*}} -> tensor<f32>
// MANY: dg.return %[[TOTAL]] {names = ["loss"]}

// A graph without backward or update has forward chunks only, and its results keep their names. A parameter of another
// stage travels with the micro-batch.
dg.graph @infer(%x: tensor<4x6xf32>) typed {
  %w1 = dg.parameter "w1" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<6xf32>
  %h = dg.mul %x, %w1 {place = #dg.place<label = "h", origin = 2, stage = 0>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %p = dg.mul %h, %w1 {place = #dg.place<label = "p", origin = 4, stage = 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  dg.return %p, %h {names = ["y", "hidden"]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
}
// CHECK-LABEL: dg.graph @infer.0.forward(
// CHECK: %[[W:.+]] = dg.parameter "w1"
// CHECK: %[[H:.+]] = dg.mul
// CHECK-DAG: dg.send %[[H]] {channel = 0
// CHECK-DAG: dg.send %[[W]] {channel = 1
// CHECK: dg.return %[[H]] {names = ["hidden"]}
// CHECK-LABEL: dg.graph @infer.1.forward(
// CHECK-NOT: dg.parameter
// CHECK-DAG: dg.receive {channel = 0{{.*}} -> tensor<4x6xf32>
// CHECK-DAG: dg.receive {channel = 1{{.*}} -> tensor<6xf32>
// CHECK: dg.return %{{.+}} {names = ["y"]}
