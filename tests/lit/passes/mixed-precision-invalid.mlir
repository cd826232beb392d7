// An override that names nothing, one without a type and an unknown precision are mistakes of the user.
// RUN: not dg-opt %s "--dg-mixed-precision=precision=bf16 overrides=nothing=f32" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not dg-opt %s "--dg-mixed-precision=precision=bf16 overrides=h" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not dg-opt %s "--dg-mixed-precision=precision=f8" 2>&1 | FileCheck %s --check-prefix=PRECISION

// NOTHING: error: has no op that the precision override 'nothing=f32' names, expected the name of an op, its kind, or a parameter that it reads
// TYPE: error: has the precision override 'h', expected PATTERN=f32, PATTERN=bf16 or PATTERN=f16, as 'head.*=f32'
// PRECISION: error: is to be computed in 'f8', expected f32, bf16 or f16
dg.graph @loss(%x: tensor<4x8xf32>) typed {
  %h = dg.relu %x {place = #dg.place<label = "h">} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  dg.return %h : (tensor<4x8xf32>) -> ()
}
