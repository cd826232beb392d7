// A mesh has a rank on every axis and not more than a million in all.
// RUN: not dg-opt %s --dg-set-mesh=data=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not dg-opt %s --dg-set-mesh="data=2048 tensor=1024" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not dg-opt %s --dg-set-mesh=model=2 2>&1 | FileCheck %s --check-prefix=AXIS

// ZERO: error: mesh has data=0, expected a size from 1 to 1048576
// MANY: error: mesh has 2097152 ranks, expected at most 1048576
// AXIS: no such option model
module {}
