// Forward ops are cut into stages of equal time, counting the backward work of each op with it; parameters stand where
// they are first used; backward ops, updates and the ops of @eval follow the forward op of their origin.
// RUN: dg-opt %s --dg-assign-stages=mesh=pipe=2 -split-input-file | FileCheck %s
// RUN: dg-opt %s --dg-assign-stages="mesh=pipe=2 stages=0,1,1" | FileCheck %s --check-prefix=GIVEN
// RUN: dg-opt %s --dg-assign-stages=mesh=data=4 -split-input-file | FileCheck %s --check-prefix=ONE

// With one stage everything is on it.
// ONE: dg.matmul {{.*}}stage = 0
// ONE-NOT: stage = {{-1|1}}

// A search's cut is taken whatever the costs: the second stage begins with the op of origin 4.
// GIVEN-LABEL: dg.graph @eval(
// GIVEN: dg.parameter "w1" {{.*}}stage = 0
// GIVEN: dg.parameter "w2" {{.*}}stage = 1
// GIVEN: dg.parameter "w3" {{.*}}stage = 1
// GIVEN: dg.matmul {{.*}}origin = 3, stage = 0
// GIVEN: dg.matmul {{.*}}origin = 4, stage = 1
// GIVEN-LABEL: dg.graph @train(
// GIVEN: dg.matmul {{.*}}origin = 4, phase = backward, stage = 1
// GIVEN: dg.matmul {{.*}}origin = 3, phase = backward, stage = 0
// GIVEN: dg.update {{.*}}origin = 2, phase = update, stage = 1

// CHECK-LABEL: dg.graph @eval(
dg.graph @eval(%x: tensor<256x256xf32>) typed {
  // CHECK: dg.parameter "w1" {{.*}}stage = 0
  // CHECK: dg.parameter "w2" {{.*}}stage = 0
  // CHECK: dg.parameter "w3" {{.*}}stage = 1
  // CHECK: dg.matmul {{.*}}origin = 3, stage = 0
  // CHECK: dg.matmul {{.*}}origin = 4, stage = 0
  // CHECK: dg.matmul {{.*}}origin = 5, stage = 1
  %w1 = dg.parameter "w1" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<256x256xf32>
  %w2 = dg.parameter "w2" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 1>} : tensor<256x256xf32>
  %w3 = dg.parameter "w3" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 2>} : tensor<256x256xf32>
  %a = dg.matmul %x, %w1 {place = #dg.place<origin = 3>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %b = dg.matmul %a, %w2 {place = #dg.place<origin = 4>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = dg.matmul %b, %w3 {place = #dg.place<origin = 5>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  dg.return %c {names = ["c"]} : (tensor<256x256xf32>) -> ()
}

// The last of three equal products has three times the backward work of the others: it stands alone. @train decides
// although it comes second.
// CHECK-LABEL: dg.graph @train(
dg.graph @train(%x: tensor<256x256xf32>) typed {
  // CHECK: dg.parameter "w1" {{.*}}stage = 0
  // CHECK: dg.parameter "w2" {{.*}}stage = 0
  // CHECK: dg.parameter "w3" {{.*}}stage = 1
  %w1 = dg.parameter "w1" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<256x256xf32>
  %w2 = dg.parameter "w2" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 1>} : tensor<256x256xf32>
  %w3 = dg.parameter "w3" tensor<256x256xf32> uniform 0.5 {place = #dg.place<origin = 2>} : tensor<256x256xf32>
  // CHECK: dg.matmul {{.*}}origin = 3, stage = 0
  // CHECK: dg.matmul {{.*}}origin = 4, stage = 0
  // CHECK: dg.matmul {{.*}}origin = 5, stage = 1
  %a = dg.matmul %x, %w1 {place = #dg.place<origin = 3>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %b = dg.matmul %a, %w2 {place = #dg.place<origin = 4>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = dg.matmul %b, %w3 {place = #dg.place<origin = 5>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  // CHECK-COUNT-3: dg.matmul {{.*}}origin = 5, phase = backward, stage = 1
  // CHECK: dg.matmul {{.*}}origin = 4, phase = backward, stage = 0
  // CHECK: dg.matmul {{.*}}origin = 3, phase = backward, stage = 0
  %d = dg.matmul %c, %w3 {place = #dg.place<origin = 5, phase = backward>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %e = dg.matmul %d, %w3 {place = #dg.place<origin = 5, phase = backward>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %f = dg.matmul %e, %w3 {place = #dg.place<origin = 5, phase = backward>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %g = dg.matmul %f, %w2 {place = #dg.place<origin = 4, phase = backward>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %h = dg.matmul %g, %w1 {place = #dg.place<origin = 3, phase = backward>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  // CHECK: dg.sgd {{.*}}origin = 2, phase = update, stage = 1
  // CHECK: dg.update {{.*}}origin = 2, phase = update, stage = 1
  // CHECK: dg.sgd {{.*}}origin = 0, phase = update, stage = 0
  // CHECK: dg.update {{.*}}origin = 0, phase = update, stage = 0
  %w3n = dg.sgd %w3, %f {place = #dg.place<origin = 2, phase = update>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  dg.update %w3n {param = "w3", place = #dg.place<origin = 2, phase = update>} : (tensor<256x256xf32>) -> ()
  %w1n = dg.sgd %w1, %h {place = #dg.place<origin = 0, phase = update>} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  dg.update %w1n {param = "w1", place = #dg.place<origin = 0, phase = update>} : (tensor<256x256xf32>) -> ()
  dg.return %c {names = ["c"]} : (tensor<256x256xf32>) -> ()
}

// -----

// Two equal products in a row: the first stage has the first of them, and the weight that both use stands there.
// CHECK-LABEL: dg.graph @infer(
dg.graph @infer(%x: tensor<64x64xf32>) typed {
  // CHECK: dg.parameter "w" {{.*}}stage = 0
  %w = dg.parameter "w" tensor<64x64xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<64x64xf32>
  // CHECK: dg.matmul {{.*}}origin = 1, stage = 0
  %a = dg.matmul %x, %w {place = #dg.place<origin = 1>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: dg.matmul {{.*}}origin = 2, stage = 1
  %b = dg.matmul %a, %w {place = #dg.place<origin = 2>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  dg.return %b {names = ["b"]} : (tensor<64x64xf32>) -> ()
}
