// The partitioner's search decides: forward ops are cut into stages of equal time, counting the backward work of each op with it; parameters stand where
// they are first used; backward ops, updates and the ops of @eval follow the forward op of their origin.
// RUN: dg-opt %s --dg-set-mesh=pipe=2 --dg-plan-graph=microbatches=4 -split-input-file | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh=pipe=1 --dg-plan-graph="microbatches=4 chunks=2" -split-input-file | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh=tensor=2 --dg-plan-graph -split-input-file | FileCheck %s --check-prefix=TENSOR
// RUN: dg-opt %s --dg-set-mesh=data=4 --dg-plan-graph -split-input-file | FileCheck %s --check-prefix=ONE

// Where the mesh has a tensor axis, the search says of every forward op what it cuts: of the model's weights at least
// half, and of @eval nothing, which follows its parameters.
// TENSOR-LABEL: dg.graph @eval(
// TENSOR-NOT: dg.cut
// TENSOR-LABEL: dg.graph @train(
// TENSOR: dg.matmul {{.*}}dg.cut = #dg.cut<{{operand|result}} {{[0-9]}}, dim {{.*}}stage = 0>
// TENSOR: dg.matmul {{.*}}dg.cut = {{.*}}stage = 0>
// TENSOR: dg.matmul {{.*}}dg.cut = {{.*}}stage = 0>
// TENSOR-NOT: dg.cut
// TENSOR: dg.return

// With one stage everything is on it, and without a tensor axis there is nothing to cut.
// ONE-NOT: dg.cut
// ONE: dg.matmul {{.*}}stage = 0
// ONE-NOT: stage = {{-1|1}}

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
