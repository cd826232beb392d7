// The mesh is an attribute of the module.
// RUN: dg-opt %s --dg-set-mesh="data=2 pipe=3" | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh="data=2 pipe=3" | dg-opt | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh=tensor=8 --dg-set-mesh | FileCheck %s --check-prefix=ONE

// CHECK: module attributes {dg.mesh = {data = 2 : i64, pipe = 3 : i64, tensor = 1 : i64}}
// ONE: module attributes {dg.mesh = {data = 1 : i64, pipe = 1 : i64, tensor = 1 : i64}}
module {}
