// The plan says which integers an input may hold: from 0, or from minus the size where negative ones count from the end;
// with several uses what all of them allow.
// RUN: dgc %s --infer --emit plan | FileCheck %s

// CHECK: "name":"ends","values":[0],"index_bound":-5}
// CHECK-SAME: "name":"both","values":[1],"index_bound":4}
dg.graph @forward(%ends: tensor<2xi64>, %both: tensor<2xi64>) {
  %t = dg.parameter "t" tensor<5x3xf32> uniform 0.5
  %u = dg.parameter "u" tensor<4x3xf32> uniform 0.5
  %a = dg.gather %t, %ends {dim = 0}
  %b = dg.gather %t, %both {dim = 0}
  %c = dg.embedding %u, %both
  %d = dg.add %a, %b
  %e = dg.add %d, %c
  dg.return %e
}
