// A model with deduced types and numbered ops passes, bodies of control flow too.
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-number-ops --dg-verify-shapes | FileCheck %s

// CHECK-LABEL: dg.graph @infer(%{{.*}}: tensor<4x6xf32>
dg.graph @infer(%x: tensor<?x6xf32>, %h: tensor<6xf32>) {
  // CHECK: dg.relu {{.*}}origin = 0
  %r = dg.relu %x
  %last = dg.scan carry(%c = %h) over(%s = %r) {
    %n = dg.add %c, %s
    dg.return %n
  }
  dg.return %last {names = ["y"]}
}
