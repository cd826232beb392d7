// A scan has the types of its body, prints as text that parses to the same graph, and its gradient is a scan that goes
// the other way over a tape.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s -emit-bytecode | dg-opt | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-weigh-samples --dg-decompose --dg-differentiate --cse | FileCheck %s --check-prefix=GRAD

// CHECK-LABEL: dg.graph @loss
// GRAD-LABEL: dg.graph @train
dg.graph @loss(%samples: tensor<?x5x3xf32>, %y: tensor<?x3xf32>) {
  %x = dg.transpose %samples {permutation = array<i64: 1, 0, 2>}
  %w = dg.parameter "w" tensor<3x3xf32> uniform 0.5
  %h0 = dg.constant {value = 0.0, type = tensor<4x3xf32>}
  // CHECK: dg.scan carry(%{{.*}} = %{{.*}}) over(%{{.*}} = %{{.*}}) with(%{{.*}} = %{{.*}}) {{.*}} : (tensor<4x3xf32>, tensor<5x4x3xf32>, tensor<3x3xf32>) -> (tensor<4x3xf32>, tensor<5x4x3xf32>) {
  // CHECK-NEXT: dg.linear {{.*}} -> tensor<4x3xf32>
  // GRAD: dg.scan carry{{.*}} -> (tensor<4x3xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>)
  // GRAD: dg.scan carry{{.*}}num_sums = 1 : i64{{.*}}reverse
  // GRAD-NOT: dg.scan
  %last, %all = dg.scan carry(%h = %h0) over(%x1 = %x) with(%w1 = %w) {
    %p = dg.linear %h, %w1
    %s = dg.add %p, %x1
    %n = dg.relu %s
    dg.return %n, %n
  }
  %loss = dg.mse %last, %y
  dg.return %loss
}
