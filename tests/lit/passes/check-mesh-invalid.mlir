// A tensor axis that does not divide the heads is an error at the attention; a mesh that cannot be read is one for the
// user.
// RUN: dg-opt %s --dg-check-mesh=mesh=tensor=4 -split-input-file -verify-diagnostics
// RUN: not dg-opt %s --dg-check-mesh=mesh=tensor 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not dg-opt %s --dg-check-mesh=mesh=data=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not dg-opt %s --dg-check-mesh=mesh=data=2x 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not dg-opt %s --dg-check-mesh=mesh=model=2 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not dg-opt %s --dg-check-mesh=mesh=data=2,data=2 2>&1 | FileCheck %s --check-prefix=TWICE

// SIZE: error: mesh 'tensor': found 'tensor', expected AXIS=SIZE with a size from 1 to 1048576
// ZERO: error: mesh 'data=0': found 'data=0', expected AXIS=SIZE with a size from 1 to 1048576
// NUMBER: error: mesh 'data=2x': found 'data=2x', expected AXIS=SIZE with a size from 1 to 1048576
// AXIS: error: mesh 'model=2': there is no axis 'model', expected data, tensor or pipe
// TWICE: error: mesh 'data=2,data=2': axis 'data' stands twice

dg.graph @forward(%x: tensor<2x5x12xf32>) {
  // expected-error@+1 {{has 6 heads, which do not divide over tensor=4: choose a tensor axis that divides the heads}}
  %a = dg.attention %x, %x, %x {heads = 6}
  // One message is enough.
  %b = dg.attention %x, %x, %x {heads = 6}
  dg.return %a
}

// -----

dg.graph @grouped(%x: tensor<2x5x12xf32>) {
  // expected-error@+1 {{has 2 heads, which do not divide over tensor=4: choose a tensor axis that divides the heads}}
  %g = dg.attention %x, %x, %x {heads = 4, kv_heads = 2}
  dg.return %g
}
