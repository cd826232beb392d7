// Products of bf16 are made in tiles where the target has AMX, and only there; those of f32 nowhere.
// REQUIRES: dgc
// RUN: dgc %examples/mlp.mlir --batch 64 --precision bf16 --target sapphirerapids --emit asm | FileCheck %s
// RUN: dgc %examples/mlp.mlir --batch 64 --precision bf16 --target x86-64-v4 --emit asm | FileCheck %s --check-prefix=OLD
// RUN: dgc %examples/mlp.mlir --batch 64 --target sapphirerapids --emit asm | FileCheck %s --check-prefix=OLD

// CHECK: ldtilecfg
// CHECK: tileloadd
// CHECK: tdpbf16ps
// CHECK: tilestored
// CHECK: tilerelease
// OLD: .text
// OLD-NOT: {{ldtilecfg|tdpbf16ps}}
