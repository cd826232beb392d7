// Types become those of one rank, and between how a value lies and how its user needs it stands one collective: the sum
// of a partial value exactly once however many users it has, a gather where a cut value is needed whole, a slice where
// a whole one is needed cut.
// RUN: dg-opt %s --dg-set-mesh="data=2 tensor=2" --dg-split-shards -split-input-file | FileCheck %s

// CHECK-LABEL: dg.graph @partial(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x6xf32>, %[[S:[a-z0-9]+]]: tensor<f32>) typed
dg.graph @partial(%x: tensor<8x6xf32>, %s: tensor<f32>) typed {
  // The type of the whole parameter stays; what a rank holds is its shard.
  // CHECK: %[[W:.+]] = dg.parameter "w" tensor<10x6xf32> {{.*}} : tensor<10x3xf32>
  %w = dg.parameter "w" tensor<10x6xf32> uniform 0.5 {place = #dg.place<shardings = <["", "tensor"], []>>} : tensor<10x6xf32>
  // CHECK: %[[SLICE:.+]] = dg.slice_shard %[[X]] {axis = "tensor", dim = 1 : i64{{.*}} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  // CHECK: %[[P:.+]] = dg.matmul %[[SLICE]], %[[W]] {{.*}} : (tensor<4x3xf32>, tensor<10x3xf32>) -> tensor<4x10xf32>
  %p = dg.matmul %x, %w {transpose_rhs, place = #dg.place<label = "p", shardings = <["data", "tensor"], []>, <["", "tensor"], []>, <["data", ""], ["tensor"]>>} : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
  // Linear ops may take the partial sum itself.
  // CHECK: dg.scale %[[P]]
  %l = dg.scale %p {factor = 2.0, place = #dg.place<shardings = <["data", ""], ["tensor"]>, <["data", ""], ["tensor"]>>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  // Two users, one sum.
  // CHECK: %[[SUM:.+]] = dg.all_reduce %[[P]] {axis = "tensor"{{.*}}label = "p"{{.*}} : (tensor<4x10xf32>) -> tensor<4x10xf32>
  // CHECK-NEXT: dg.relu %[[SUM]]
  // CHECK-NEXT: dg.gelu %[[SUM]]
  %r = dg.relu %p {place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %g = dg.gelu %p {place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  // Partial over two axes: two sums.
  // CHECK: %[[T:.+]] = dg.reduce_sum
  // CHECK-NEXT: %[[ONE:.+]] = dg.all_reduce %[[T]] {axis = "data"
  // CHECK-NEXT: %[[TWO:.+]] = dg.all_reduce %[[ONE]] {axis = "tensor"
  // CHECK-NEXT: dg.relu %[[TWO]]
  %t = dg.reduce_sum %l {dims = array<i64: 0>, place = #dg.place<shardings = <["data", ""], ["tensor"]>, <[""], ["data", "tensor"]>>} : (tensor<8x10xf32>) -> tensor<10xf32>
  %u = dg.relu %t {place = #dg.place<shardings = <[""], []>, <[""], []>>} : (tensor<10xf32>) -> tensor<10xf32>
  // CHECK-NOT: dg.all_reduce
  // CHECK: dg.return
  dg.return %r, %g, %u {names = ["r", "g", "u"], place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>, <[""], []>>} : (tensor<8x10xf32>, tensor<8x10xf32>, tensor<10xf32>) -> ()
}

// -----

// CHECK-LABEL: dg.graph @gather(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x6xf32>) typed
dg.graph @gather(%x: tensor<8x6xf32>) typed {
  // CHECK: %[[H:.+]] = dg.relu {{.*}} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %h = dg.relu %x {place = #dg.place<label = "h", shardings = <["data", "tensor"], []>, <["data", "tensor"], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  // CHECK-NEXT: %[[WHOLE:.+]] = dg.all_gather %[[H]] {axis = "tensor", dim = 1 : i64{{.*}} : (tensor<4x3xf32>) -> tensor<4x6xf32>
  // CHECK-NEXT: dg.softmax %[[WHOLE]]
  // CHECK-NEXT: dg.log_softmax %[[WHOLE]]
  %s = dg.softmax %h {place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %l = dg.log_softmax %h {place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  // A cut that moves from dimension 0 to dimension 1 goes through the whole.
  // CHECK-NEXT: %[[G:.+]] = dg.all_gather %[[X]] {axis = "data", dim = 0 : i64{{.*}} -> tensor<8x6xf32>
  // CHECK-NEXT: %[[C:.+]] = dg.slice_shard %[[G]] {axis = "data", dim = 1 : i64{{.*}} -> tensor<8x3xf32>
  // CHECK-NEXT: dg.relu %[[C]]
  %m = dg.relu %x {place = #dg.place<shardings = <["", "data"], []>, <["", "data"], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %s, %l, %m {names = ["s", "l", "m"], place = #dg.place<shardings = <["data", ""], []>, <["data", ""], []>, <["", "data"], []>>} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) -> ()
}

// -----

// Attributes that hold shapes become local with the types.
// CHECK-LABEL: dg.graph @shapes(
dg.graph @shapes() typed {
  // CHECK: dg.constant {{.*}}type = tensor<4x2xf32>{{.*}} -> tensor<4x2xf32>
  // CHECK: dg.reshape {{.*}}shape = array<i64: 4, 1, 2>
  // CHECK: dg.expand {{.*}}shape = array<i64: 4, 3, 2>
  %c = dg.constant {value = 1.0, type = tensor<8x4xf32>, place = #dg.place<shardings = <["data", "tensor"], []>>} : () -> tensor<8x4xf32>
  %r = dg.reshape %c {shape = array<i64: 8, 1, 4>, place = #dg.place<shardings = <["data", "tensor"], []>, <["data", "", "tensor"], []>>} : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
  %e = dg.expand %r {shape = array<i64: 8, 3, 4>, place = #dg.place<shardings = <["data", "", "tensor"], []>, <["data", "", "tensor"], []>>} : (tensor<8x1x4xf32>) -> tensor<8x3x4xf32>
  dg.return %e {names = ["e"], place = #dg.place<shardings = <["data", "", "tensor"], []>>} : (tensor<8x3x4xf32>) -> ()
}

// -----

// A sum that an update or a result needs is complete only at the end of the step: it belongs to the update phase, on
// the stage of the op that made the summand, under the name of what it updates.
// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<8x6xf32>) typed {
  %b = dg.parameter "b" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 1, shardings = <[""], []>>} : tensor<6xf32>
  %l = dg.reduce_sum %x {dims = array<i64: 0, 1>, place = #dg.place<label = "loss", origin = 1, stage = 1, shardings = <["data", ""], []>, <[], ["data"]>>} : (tensor<8x6xf32>) -> tensor<f32>
  %g = dg.reduce_sum %x {dims = array<i64: 0>, place = #dg.place<origin = 2, phase = backward, stage = 1, shardings = <["data", ""], []>, <[""], ["data"]>>} : (tensor<8x6xf32>) -> tensor<6xf32>
  // CHECK: dg.all_reduce {{.*}}place = #dg.place<label = "b", origin = 2, phase = update, stage = 1>
  // CHECK: dg.sgd
  %n = dg.sgd %b, %g {place = #dg.place<label = "b", origin = 0, phase = update, stage = 1, shardings = <[""], []>, <[""], []>, <[""], []>>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n {param = "b", place = #dg.place<label = "b", origin = 0, phase = update, stage = 1, shardings = <[""], []>>} : (tensor<6xf32>) -> ()
  // CHECK: dg.all_reduce {{.*}}place = #dg.place<label = "loss", origin = 1, phase = update, stage = 1>
  // CHECK-NEXT: dg.return
  dg.return %l {names = ["loss"], place = #dg.place<shardings = <[], []>>} : (tensor<f32>) -> ()
}

// -----

// A cut that moves from dimension 1 to dimension 0 is gathered first too: pieces of different rows do not fit together.
// CHECK-LABEL: dg.graph @turn(
dg.graph @turn(%x: tensor<8x6xf32>) typed {
  // CHECK: %[[H:.+]] = dg.relu
  // CHECK-NEXT: %[[G:.+]] = dg.all_gather %[[H]] {axis = "tensor", dim = 1 : i64{{.*}} -> tensor<8x6xf32>
  // CHECK-NEXT: %[[C:.+]] = dg.slice_shard %[[G]] {axis = "tensor", dim = 0 : i64{{.*}} -> tensor<4x6xf32>
  %h = dg.relu %x {place = #dg.place<shardings = <["", "tensor"], []>, <["", "tensor"], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %t = dg.gelu %h {place = #dg.place<shardings = <["tensor", ""], []>, <["tensor", ""], []>>} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %t {names = ["t"], place = #dg.place<shardings = <["tensor", ""], []>>} : (tensor<8x6xf32>) -> ()
}

// -----

// An update reads its parameter itself, though a forward op already has the same slice of it; and a sum that inference
// returns belongs to its micro-batch, not to the end of a step.
// CHECK-LABEL: dg.graph @train(
dg.graph @train(%g: tensor<6xf32>) typed {
  // CHECK: %[[B:.+]] = dg.parameter "b"
  %b = dg.parameter "b" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0, shardings = <[""], []>>} : tensor<6xf32>
  // CHECK: dg.slice_shard %[[B]] {{.*}}place = #dg.place<origin = 0, stage = 0>
  %r = dg.relu %b {place = #dg.place<origin = 1, stage = 0, shardings = <["tensor"], []>, <["tensor"], []>>} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: %[[OWN:.+]] = dg.slice_shard %[[B]] {{.*}}phase = update
  // CHECK: dg.sgd %[[OWN]], %[[OWN]]
  %n = dg.sgd %b, %b {place = #dg.place<label = "b", origin = 0, phase = update, stage = 0, shardings = <["tensor"], []>, <["tensor"], []>, <["tensor"], []>>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n {param = "b", place = #dg.place<label = "b", origin = 0, phase = update, stage = 0, shardings = <[""], []>>} : (tensor<6xf32>) -> ()
  dg.return %r {names = ["r"], place = #dg.place<shardings = <["tensor"], []>>} : (tensor<6xf32>) -> ()
}
// CHECK-LABEL: dg.graph @infer(
dg.graph @infer(%x: tensor<8x6xf32>) typed {
  %s = dg.reduce_sum %x {dims = array<i64: 1>, place = #dg.place<label = "s", origin = 0, stage = 0, shardings = <["data", "tensor"], []>, <["data"], ["tensor"]>>} : (tensor<8x6xf32>) -> tensor<8xf32>
  // CHECK: dg.all_reduce {{.*}}place = #dg.place<label = "s", origin = 0, stage = 0>
  dg.return %s {names = ["s"], place = #dg.place<shardings = <["data"], []>>} : (tensor<8xf32>) -> ()
}

// -----

// A partial sum that is needed cut is summed in parts; with ZeRO 3 a parameter is gathered once for the forward and once for the backward pass.
// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<8x6xf32>) typed {
  // CHECK: %[[B:.+]] = dg.parameter "b" {{.*}} : tensor<3xf32>
  %b = dg.parameter "b" tensor<6xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0, shardings = <["data"], []>>} : tensor<6xf32>
  // CHECK: %[[F:.+]] = dg.all_gather %[[B]] {{.*}}place = #dg.place<origin = 0, stage = 0>{{.*}} -> tensor<6xf32>
  // CHECK: dg.relu %[[F]]
  %r = dg.relu %b {place = #dg.place<origin = 1, stage = 0, shardings = <[""], []>, <[""], []>>} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: %[[G:.+]] = dg.all_gather %[[B]] {{.*}}phase = backward
  // CHECK: dg.neg %[[G]]
  %m = dg.neg %b {place = #dg.place<origin = 1, phase = backward, stage = 0, shardings = <[""], []>, <[""], []>>} : (tensor<6xf32>) -> tensor<6xf32>
  %s = dg.reduce_sum %x {dims = array<i64: 0>, place = #dg.place<label = "s", origin = 1, phase = backward, stage = 0, shardings = <["data", ""], []>, <[""], ["data"]>>} : (tensor<8x6xf32>) -> tensor<6xf32>
  // CHECK: %[[S:.+]] = dg.reduce_scatter {{.*}}axis = "data", dim = 0{{.*}}phase = update{{.*}} -> tensor<3xf32>
  // CHECK: dg.sgd %[[B]], %[[S]]
  %n = dg.sgd %b, %s {place = #dg.place<label = "b", origin = 0, phase = update, stage = 0, shardings = <["data"], []>, <["data"], []>, <["data"], []>>} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  dg.update %n {param = "b", place = #dg.place<label = "b", origin = 0, phase = update, stage = 0, shardings = <["data"], []>>} : (tensor<6xf32>) -> ()
  dg.return %r, %m {names = ["r", "m"], place = #dg.place<shardings = <[""], []>, <[""], []>>} : (tensor<6xf32>, tensor<6xf32>) -> ()
}
