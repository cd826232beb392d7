// Clipping by norm sums the squares of all gradients, each beside its parameter and the sum where the loss is made, and every
// gradient is clipped by it; the norm is a result of the step; weight decay follows the groups; lamb's length is that of the whole parameter.
// RUN: dg-opt %s "--dg-add-optimizer=optimizer=sgd:clip_norm=2,clip_value=0.5,weight_decay=0.25;b:weight_decay=0" | FileCheck %s
// RUN: dg-opt %s --dg-add-optimizer=optimizer=lamb | FileCheck %s --check-prefix=LAMB
// RUN: dg-opt %s --dg-add-optimizer=optimizer=rmsprop:alpha=0.5 | FileCheck %s --check-prefix=RMSPROP
// RUN: dg-opt %s --dg-add-optimizer=optimizer=adagrad:initial_sum=0.5 | FileCheck %s --check-prefix=ADAGRAD
// RUN: dg-opt %s --dg-add-optimizer=optimizer=lion:beta2=0.25 | FileCheck %s --check-prefix=LION

// CHECK-LABEL: dg.graph @train(
// CHECK-SAME: %{{.+}}: tensor<f32>, %[[GW:[a-z0-9]+]]: tensor<4x2xf32>, %[[GB:[a-z0-9]+]]: tensor<2xf32>
// CHECK: dg.mul %[[GW]], %[[GW]] {place = #dg.place<label = "w", origin = 7, phase = update>}
// CHECK: %[[W2:.+]] = dg.reduce_sum {{.*}}dims = array<i64: 0, 1>{{.*}}origin = 7
// CHECK: %[[B2:.+]] = dg.reduce_sum {{.*}}origin = 8
// CHECK: %[[SQUARE:.+]] = dg.add %[[W2]], %[[B2]] {place = #dg.place<label = "gradient norm", origin = 9, phase = update>}
// CHECK: %[[NORM:.+]] = dg.sqrt %[[SQUARE]] {place = #dg.place<label = "gradient norm", origin = 9, phase = update>}
// CHECK: %[[CW:.+]] = dg.clip_gradient %[[GW]], %[[SQUARE]] {max_norm = 2.000000e+00 : f64, max_value = 5.000000e-01 : f64, {{.*}}origin = 7
// CHECK: dg.sgd %{{.+}}, %[[CW]] {{.*}}weight_decay = 2.500000e-01
// CHECK: %[[CB:.+]] = dg.clip_gradient %[[GB]], %[[SQUARE]]
// CHECK: dg.sgd %{{.+}}, %[[CB]] {{.*}}weight_decay = 0.000000e+00
// CHECK: dg.return %{{.+}}, %[[NORM]] {names = ["loss", "grad_norm"]

// LAMB: %[[R:.+]], %[[M:.+]], %[[V:.+]] = dg.lamb_direction
// LAMB: %[[PP:.+]] = dg.reduce_sum
// LAMB: %[[RR:.+]] = dg.reduce_sum
// LAMB: %[[NEXT:.+]] = dg.lamb_step %{{.+}}, %[[R]], %[[PP]], %[[RR]]
// LAMB: dg.update %[[NEXT]] {param = "w"
// LAMB: dg.update %[[M]] {param = "w.lamb_m"
// LAMB: dg.update %[[V]] {param = "w.lamb_v"
// RMSPROP: dg.rmsprop {{.*}}alpha = 5.000000e-01
// RMSPROP: dg.update {{.*}}param = "w.rmsprop_square"
// RMSPROP: dg.update {{.*}}param = "w.rmsprop_velocity"
// ADAGRAD: dg.parameter "w.adagrad_sum" tensor<4x2xf32> constant 5.000000e-01
// ADAGRAD: dg.adagrad
// LION: dg.lion {{.*}}beta2 = 2.500000e-01
dg.graph @train(%x: tensor<f32>, %gw: tensor<4x2xf32>, %gb: tensor<2xf32>) typed {
  %w = dg.parameter "w" tensor<4x2xf32> uniform 0.5 {place = #dg.place<origin = 7>} : tensor<4x2xf32>
  %b = dg.parameter "b" tensor<2xf32> uniform 0.5 {place = #dg.place<origin = 8>} : tensor<2xf32>
  %loss = dg.scale %x {factor = 2.0, place = #dg.place<origin = 9>} : (tensor<f32>) -> tensor<f32>
  dg.return %loss, %gw, %gb {names = ["loss", "grad w", "grad b"]} : (tensor<f32>, tensor<4x2xf32>, tensor<2xf32>) -> ()
}
