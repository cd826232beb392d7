// A chain of elementwise ops of one shape becomes one kernel that reads each input once; a value that someone outside
// the chain needs is kept, and ops of another shape or family stay apart.
// RUN: dg-opt %s --dg-fuse-elementwise | FileCheck %s
// RUN: dg-opt %s --dg-fuse-elementwise | dg-opt --dg-fuse-elementwise | FileCheck %s

// CHECK-LABEL: dg.graph @chain(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x6xf32>, %[[B:[a-z0-9]+]]: tensor<6xf32>
dg.graph @chain(%x: tensor<4x6xf32>, %b: tensor<6xf32>) typed {
  // CHECK-NEXT: %[[F:.+]] = dg.fused %[[X]], %[[B]] {place = #dg.place<label = "c", origin = 5, stage = 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: ^bb0(%[[P:.+]]: tensor<4x6xf32>, %[[Q:.+]]: tensor<6xf32>):
  // CHECK-NEXT: %[[A:.+]] = dg.add %[[P]], %[[Q]]
  // CHECK-NEXT: %[[R:.+]] = dg.relu %[[A]]
  // CHECK-NEXT: %[[C:.+]] = dg.mul %[[R]], %[[P]]
  // CHECK-NEXT: dg.return %[[C]]
  // CHECK-NEXT: }
  // CHECK-NEXT: dg.return %[[F]]
  %a = dg.add %x, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %r = dg.relu %a : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = dg.mul %r, %x {place = #dg.place<label = "c", origin = 5, stage = 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %c {names = ["c"]} : (tensor<4x6xf32>) -> ()
}

// %r has a user outside: it is computed by itself, and once.
// CHECK-LABEL: dg.graph @several_uses(
dg.graph @several_uses(%x: tensor<4x6xf32>) typed {
  // CHECK-NEXT: %[[R:.+]] = dg.relu
  // CHECK-NEXT: %[[S:.+]] = dg.softmax %[[R]]
  // CHECK-NEXT: %[[F:.+]] = dg.fused %[[R]]
  // CHECK-NOT: dg.relu
  // CHECK: dg.gelu
  // CHECK: dg.scale
  // CHECK: dg.return %[[S]], %[[F]]
  %r = dg.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = dg.softmax %r : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %g = dg.gelu %r : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %h = dg.scale %g {factor = 2.0} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %s, %h {names = ["s", "h"]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
}

// Two uses inside the chain are no hindrance.
// CHECK-LABEL: dg.graph @square(
dg.graph @square(%x: tensor<4x6xf32>) typed {
  // CHECK-NEXT: dg.fused
  // CHECK: %[[R:.+]] = dg.relu
  // CHECK-NEXT: dg.mul %[[R]], %[[R]]
  %r = dg.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = dg.mul %r, %r : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %m {names = ["m"]} : (tensor<4x6xf32>) -> ()
}

// A small operand that is broadcast is computed once, not for each element of the result; one op alone is no chain.
// CHECK-LABEL: dg.graph @shapes(
// CHECK-NOT: dg.fused
// CHECK: dg.return
dg.graph @shapes(%x: tensor<4x6xf32>, %b: tensor<6xf32>) typed {
  %s = dg.scale %b {factor = 2.0} : (tensor<6xf32>) -> tensor<6xf32>
  %a = dg.add %x, %s : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %t = dg.softmax %a : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = dg.relu %t : (tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %r {names = ["r"]} : (tensor<4x6xf32>) -> ()
}

// A chain does not reach across a collective: the sum must be complete first.
// CHECK-LABEL: dg.graph @collective(
// CHECK-NOT: dg.fused
// CHECK: dg.return
dg.graph @collective(%x: tensor<4x6xf32>) typed {
  %r = dg.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = dg.all_reduce %r {axis = "data"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %g = dg.gelu %s : (tensor<4x6xf32>) -> tensor<4x6xf32>
  dg.return %g {names = ["g"]} : (tensor<4x6xf32>) -> ()
}
