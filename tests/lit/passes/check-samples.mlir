// Where steps are padded and batches cut, whatever works row by row is left alone, and so is what the weights of the samples have gone into.
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-add-evaluation --dg-weigh-samples --dg-decompose --dg-check-samples="padded=2 pieces=3" | FileCheck %s

// CHECK-NOT: dg.mixes_samples
// CHECK-LABEL: dg.graph @eval(
dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?xf32>) {
  %w = dg.parameter "w" tensor<6x6xf32> uniform 0.5
  %p = dg.matmul %x, %w
  %s = dg.softmax %p {axis = 1}
  %t = dg.transpose %s {permutation = array<i64: 1, 0>}
  %largest = dg.reduce_max %t {dims = array<i64: 0>, keep}
  %u = dg.sub %t, %largest
  %m = dg.reduce_mean %u {dims = array<i64: 0>}
  %r = dg.reshape %p {shape = array<i64: 4, 2, 3>}
  %a = dg.reduce_sum %r {dims = array<i64: 1, 2>}
  %b = dg.add %m, %a
  // Parameters have no samples.
  %n = dg.reduce_mean %w {dims = array<i64: 0, 1>}
  %c = dg.mul %b, %n
  // CHECK: dg.reduce_sum
  %loss = dg.mse %c, %y
  dg.return %loss
}
