// Casts that change the type pass; between phases a sum may lie between a widening and a narrowing one.
// RUN: dg-opt %s --dg-verify-precision | FileCheck %s

// CHECK-LABEL: dg.graph @train(
// CHECK: dg.cast {{.*}}to = bf16
dg.graph @train(%x: tensor<6xbf16>) typed {
  %f = dg.cast %x {place = #dg.place<phase = backward>, to = f32} : (tensor<6xbf16>) -> tensor<6xf32>
  %h = dg.cast %f {place = #dg.place<phase = update>, to = bf16} : (tensor<6xf32>) -> tensor<6xbf16>
  dg.return %h {names = ["loss"]} : (tensor<6xbf16>) -> ()
}
