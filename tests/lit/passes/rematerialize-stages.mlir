// A later stage reads what it received in the forward pass: what its sender makes again comes only after its own
// backward pass.
// RUN: dg-opt %s --dg-rematerialize=saved=1048576,0 | FileCheck %s --implicit-check-not=dg.exp

// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<16x16xf32>) typed {
  %w = dg.parameter "w" tensor<16x16xf32> uniform 0.5 {place = #dg.place<origin = 0, stage = 0>} : tensor<16x16xf32>
  // CHECK: %[[P:.*]] = dg.exp
  %p = dg.exp %x {place = #dg.place<label = "p", origin = 1, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %q = dg.tanh %p {place = #dg.place<label = "q", origin = 2, stage = 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %l = dg.mul %q, %q {place = #dg.place<label = "l", origin = 3, stage = 1>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: dg.sub %{{.*}}, %[[P]] {{.*}}stage = 1
  %g = dg.sub %l, %p {place = #dg.place<label = "g", origin = 3, phase = backward, stage = 1>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %k = dg.mul %g, %g {place = #dg.place<label = "k", origin = 2, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: dg.mul {{.*}}label = "j"
  %j = dg.mul %k, %g {place = #dg.place<label = "j", origin = 2, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK-NEXT: %[[AGAIN:.*]] = dg.exp {{.*}}label = "p", origin = 1, phase = backward, stage = 0
  // CHECK-NEXT: dg.mul %{{.*}}, %[[AGAIN]] {{.*}}stage = 0
  %h = dg.mul %j, %p {place = #dg.place<label = "h", origin = 1, phase = backward, stage = 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  dg.update %h {param = "w", place = #dg.place<origin = 1, phase = update, stage = 0>} : (tensor<16x16xf32>) -> ()
  dg.return {names = [], place = #dg.place<>} : () -> ()
}
