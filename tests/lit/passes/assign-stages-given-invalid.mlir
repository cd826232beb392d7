// Stages that a search gives have to be one for each op, within the mesh, the same for all parts of an op, and never before those of operands.
// RUN: not dg-opt %s --dg-assign-stages="mesh=pipe=2 stages=1" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not dg-opt %s --dg-assign-stages="mesh=pipe=2 stages=0,2,2" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not dg-opt %s --dg-assign-stages="mesh=pipe=2 stages=1,0,0" 2>&1 | FileCheck %s --check-prefix=BACK
// RUN: not dg-opt %s --dg-assign-stages="mesh=pipe=2 stages=0,0,1" 2>&1 | FileCheck %s --check-prefix=PARTS

// FEW: was given 1 stages, expected one for each of its 3 forward ops that read more than parameters
// RANGE: 'dg.reshape' op was given stage 2, expected 0 to 1
// BACK: 'dg.reshape' op was given stage 0, but reads a value of stage 1: expected that every value goes forward
// PARTS: 'dg.relu' op was given stage 1, but another part of the same op stage 0: expected one stage

dg.graph @infer(%x: tensor<4x4xf32>) typed {
  %w = dg.parameter "w" tensor<4x4xf32> uniform 0.5 {place = #dg.place<origin = 0>} : tensor<4x4xf32>
  %a = dg.matmul %x, %w {place = #dg.place<origin = 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = dg.reshape %a {shape = array<i64: 16>, place = #dg.place<origin = 2>} : (tensor<4x4xf32>) -> tensor<16xf32>
  %b = dg.relu %r {place = #dg.place<origin = 2>} : (tensor<16xf32>) -> tensor<16xf32>
  dg.return %b {names = ["b"]} : (tensor<16xf32>) -> ()
}
