// The author's name of a result becomes the op's label, for messages and pictures; the printer's numbers do not, and a
// label that is there already is kept.
// RUN: dg-opt %s | dg-opt | FileCheck %s

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<2x2xf32>, %y: tensor<2xi32>) {
  // CHECK: dg.relu {{.*}} {place = #dg.place<label = "hidden">}
  %hidden = dg.relu %x
  // CHECK: dg.relu {{%[a-z0-9]+$}}
  %0 = dg.relu %hidden
  // CHECK: dg.relu {{.*}} {place = #dg.place<label = "kept", origin = 7, phase = backward, stage = 1>}
  %other = dg.relu %0 {place = #dg.place<label = "kept", origin = 7, phase = backward, stage = 1>}
  // CHECK: dg.layer_norm_grad {{.*}}place = #dg.place<label = "dx">}
  %dx, %dw, %db = dg.layer_norm_grad %other, %x, %x
  // A label may hold any character.
  // CHECK: dg.gelu {{.*}} {place = #dg.place<label = "block 0/\22quoted\22">}
  %1 = dg.gelu %dx {place = #dg.place<label = "block 0/\22quoted\22">}
  dg.return %1, %dw, %db
}
