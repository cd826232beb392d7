// A gradient is rounded and widened again in the update phase; between the two the data ranks sum it.
// RUN: dg-opt %s --dg-narrow-gradients=precision=f16 | FileCheck %s

dg.graph @train(%x: tensor<4xf32>) typed {
  %w = dg.parameter "w" tensor<4xf32> uniform 0.5 {place = #dg.place<label = "w", origin = 2>} : tensor<4xf32>
  %g = dg.mul %x, %w {place = #dg.place<origin = 3, phase = backward>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[N:.+]] = dg.cast %{{.+}} {place = #dg.place<origin = 2, phase = update>, to = f16}
  // CHECK: %[[G:.+]] = dg.cast %[[N]] {place = #dg.place<label = "w", origin = 2, phase = update>, to = f32}
  // CHECK: dg.return %{{.+}}, %[[G]]
  dg.return %x, %g {names = ["loss", "grad w"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
}
