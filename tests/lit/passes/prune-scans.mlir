// Results of a scan that nobody reads go, with the ops of its body and the operands that only they need. What is carried
// stays where another trip reads it; of the scanned tensors one stays, whose slices count the trips.
// RUN: dg-opt %s --dg-prune-scans | FileCheck %s

// CHECK-LABEL: dg.graph @unread(
// CHECK-SAME: %[[H:[a-z0-9]+]]: tensor<2x3xf32>, %[[X:[a-z0-9]+]]: tensor<5x2x3xf32>, %[[Z:[a-z0-9]+]]: tensor<5x2x3xf32>, %[[W:[a-z0-9]+]]: tensor<3xf32>
dg.graph @unread(%h0: tensor<2x3xf32>, %xs: tensor<5x2x3xf32>, %zs: tensor<5x2x3xf32>, %w: tensor<3xf32>) typed {
  // CHECK: %[[S:.+]] = dg.scan carry(%{{.+}} = %[[H]]) over(%{{.+}} = %[[X]]) {{.*}} : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: dg.add
  // CHECK-NEXT: dg.return %{{[a-z0-9]+}} :
  %last, %all, %sum = dg.scan carry(%h = %h0) over(%x = %xs, %z = %zs) with(%v = %w) attributes {num_sums = 1 : i64} : (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<2x3xf32>) {
    %n = dg.add %h, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %t = dg.mul %z, %v : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %u = dg.tanh %t : (tensor<2x3xf32>) -> tensor<2x3xf32>
    dg.return %n, %t, %u : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }
  dg.return %last : (tensor<2x3xf32>) -> ()
}

// The state is read in each trip though nobody reads its last value; the trips are those of a tensor that is not read.
// CHECK-LABEL: dg.graph @carried(
dg.graph @carried(%h0: tensor<2xf32>, %g0: tensor<2xf32>, %xs: tensor<5x2xf32>) typed {
  // CHECK: dg.scan carry(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}) over(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}) {{.*}} : (tensor<2xf32>, tensor<5x2xf32>) -> (tensor<2xf32>, tensor<5x2xf32>)
  %h1, %g1, %all = dg.scan carry(%h = %h0, %g = %g0) over(%x = %xs) : (tensor<2xf32>, tensor<2xf32>, tensor<5x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<5x2xf32>) {
    %n = dg.tanh %h : (tensor<2xf32>) -> tensor<2xf32>
    %m = dg.tanh %g : (tensor<2xf32>) -> tensor<2xf32>
    dg.return %n, %m, %n : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }
  dg.return %all : (tensor<5x2xf32>) -> ()
}
