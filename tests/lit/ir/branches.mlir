// An if and a while have the types of their bodies and print as text that parses to the same graph; the gradient of an if is an if of both
// branches' gradients.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s -emit-bytecode | dg-opt | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-weigh-samples --dg-decompose --dg-differentiate --cse | FileCheck %s --check-prefix=GRAD

// CHECK-LABEL: dg.graph @loss
// GRAD-LABEL: dg.graph @train
dg.graph @loss(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>, %c: tensor<i1>) {
  %w = dg.parameter "w" tensor<3x3xf32> uniform 0.5
  // CHECK: dg.if %{{.*}} with(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) {{.*}}: (tensor<i1>, tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32> {
  // CHECK-NEXT: dg.linear %[[A]], %[[B]]
  // CHECK: } else {
  // CHECK-NEXT: dg.relu %[[A]]
  // GRAD: dg.if {{.*}} -> tensor<4x3xf32>
  // GRAD: dg.if {{.*}} -> (tensor<4x3xf32>, tensor<3x3xf32>)
  // GRAD: dg.matmul
  // GRAD: } else {
  // GRAD: dg.constant {{.*}}type = tensor<3x3xf32>, value = 0.000000e+00
  %p = dg.if %c with(%a = %x, %b = %w) {
    %h = dg.linear %a, %b
    dg.return %h
  } else {
    %h = dg.relu %a
    dg.return %h
  }
  %loss = dg.mse %p, %y
  dg.return %loss
}

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<?x3xf32>, %n0: tensor<i64>, %limit: tensor<i64>, %go: tensor<i1>) {
  %one = dg.constant {value = 1.0, type = tensor<i64>}
  // CHECK: dg.while %{{.*}} carry(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) with(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) attributes {max_trips = 9 : i64{{.*}}} : (tensor<i1>, tensor<i64>, tensor<4x3xf32>, tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<4x3xf32>) {
  %last, %y = dg.while %go carry(%n = %n0, %h = %x) with(%step = %one, %most = %limit) attributes {max_trips = 9 : i64} {
    %m = dg.add %n, %step
    %g = dg.relu %h
    %again = dg.compare %m, %most {predicate = "lt"}
    dg.return %again, %m, %g
  }
  dg.return %last, %y
}
