// A product rounds an f32 parameter by itself and gives f32 where its result would be widened; casts that undo each other
// go, unless sums over micro-batches lie between them.
// RUN: dg-opt %s --dg-fuse-casts | FileCheck %s
// RUN: dg-opt %s --dg-fuse-casts=microbatches=2 | FileCheck %s --check-prefix=SUMS

// CHECK-LABEL: dg.graph @product
dg.graph @product(%x: tensor<4x8xbf16>) typed {
  // CHECK: %[[W:.+]] = dg.parameter "w"
  %w = dg.parameter "w" tensor<6x8xf32> uniform 0.5 : tensor<6x8xf32>
  %c = dg.cast %w {to = bf16} : (tensor<6x8xf32>) -> tensor<6x8xbf16>
  // CHECK-NEXT: %[[P:.+]] = dg.matmul %{{.+}}, %[[W]] {{.*}}to = f32, transpose_rhs} : (tensor<4x8xbf16>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %p = dg.matmul %x, %c {transpose_rhs} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xbf16>
  %f = dg.cast %p {to = f32} : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  // CHECK-NEXT: dg.return %[[P]]
  dg.return %f {names = ["p"]} : (tensor<4x6xf32>) -> ()
}

// CHECK-LABEL: dg.graph @both_ways
// SUMS-LABEL: dg.graph @both_ways
dg.graph @both_ways(%x: tensor<4xbf16>) typed {
  // SUMS: %[[F:.+]] = dg.cast %{{.+}} -> tensor<4xf32>
  // SUMS: dg.cast %[[F]] {{.*}} -> tensor<4xbf16>
  // CHECK-NOT: dg.cast
  %f = dg.cast %x {place = #dg.place<phase = backward>, to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %b = dg.cast %f {place = #dg.place<phase = update>, to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  dg.return %b {names = ["b"]} : (tensor<4xbf16>) -> ()
}
