// The mesh is an attribute of the module.
// RUN: dg-opt %s --dg-set-mesh="data=2 pipe=3" | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh="data=2 pipe=3" | dg-opt | FileCheck %s
// RUN: dg-opt %s --dg-set-mesh=tensor=8 --dg-set-mesh | FileCheck %s --check-prefix=ONE

// CHECK: module attributes {dg.mesh = #dg.mesh<data = 2, tensor = 1, pipe = 3>}
// ONE: module attributes {dg.mesh = #dg.mesh<data = 1, tensor = 1, pipe = 1>}
module {}
