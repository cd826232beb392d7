// Each gradient that @train returns becomes one update of its parameter, by the optimizer of the option or else of the
// module, with the state that this optimizer keeps; other results stay.
// RUN: dg-opt %s --dg-add-optimizer | FileCheck %s --check-prefixes=CHECK,MODULE
// RUN: dg-opt %s --dg-add-optimizer=optimizer=sgd | FileCheck %s --check-prefixes=CHECK,SGD
// RUN: dg-opt %s --dg-add-optimizer=optimizer=sgd:lr=0.1,momentum=0.5,nesterov=1 | FileCheck %s --check-prefixes=CHECK,MOMENTUM
// RUN: dg-opt %s --dg-add-optimizer=optimizer=adam:beta1=0.5,beta2=0.25,eps=0.125 | FileCheck %s --check-prefixes=CHECK,ADAM
// RUN: dg-opt %s "--dg-add-optimizer=optimizer=adamw;b:lr=0.002" | FileCheck %s --check-prefixes=CHECK,ADAMW

module attributes {dg.optimizer = "sgd:lr=0.01,weight_decay=0.25"} {
  // CHECK-LABEL: dg.graph @train(
  // CHECK-SAME: %[[LOSS:[a-z0-9]+]]: tensor<f32>, %[[GW:[a-z0-9]+]]: tensor<4xf32>, %[[GB:[a-z0-9]+]]: tensor<2xf64>
  dg.graph @train(%loss: tensor<f32>, %gw: tensor<4xf32>, %gb: tensor<2xf64>) typed {
    // CHECK: %[[W:.+]] = dg.parameter "w"
    // CHECK: %[[B:.+]] = dg.parameter "b"
    // CHECK: dg.parameter "cold"
    %w = dg.parameter "w" tensor<4xf32> uniform 0.5 {place = #dg.place<origin = 7>} : tensor<4xf32>
    %b = dg.parameter "b" tensor<2xf64> uniform 0.5 {place = #dg.place<origin = 8>} : tensor<2xf64>
    %cold = dg.parameter "cold" tensor<2xf64> uniform 0.5 {frozen} : tensor<2xf64>

    // MODULE: %[[W1:.+]] = dg.sgd %[[W]], %[[GW]] {{.*}}weight_decay = 2.500000e-01

    // The update stays with the parameter: its label, its origin, hence its stage.
    // SGD: %[[W1:.+]] = dg.sgd %[[W]], %[[GW]] {place = #dg.place<label = "w", origin = 7, phase = update>, weight_decay = 0.000000e+00 : f64}
    // SGD-NEXT: dg.update %[[W1]] {param = "w", place = #dg.place<label = "w", origin = 7, phase = update>}
    // SGD-NEXT: %[[B1:.+]] = dg.sgd %[[B]], %[[GB]] {{.*}} -> tensor<2xf64>
    // SGD-NEXT: dg.update %[[B1]] {param = "b"

    // State starts at zero and has the type of its parameter.
    // MOMENTUM: %[[V:.+]] = dg.parameter "w.momentum" tensor<4xf32> constant 0.000000e+00 {place = #dg.place<label = "w", origin = 7, phase = update>, state}
    // MOMENTUM-NEXT: %[[W1:.+]], %[[V1:.+]] = dg.momentum %[[W]], %[[GW]], %[[V]] {momentum = 5.000000e-01 : f64, nesterov,
    // MOMENTUM-NEXT: dg.update %[[W1]] {param = "w",
    // MOMENTUM-NEXT: dg.update %[[V1]] {param = "w.momentum",
    // MOMENTUM: dg.parameter "b.momentum" tensor<2xf64>

    // ADAM: %[[M:.+]] = dg.parameter "w.adam_m" tensor<4xf32> constant 0.000000e+00 {{.*}}state
    // ADAM-NEXT: %[[V:.+]] = dg.parameter "w.adam_v" tensor<4xf32> constant 0.000000e+00 {{.*}}state
    // ADAM-NEXT: %[[W1:.+]], %[[M1:.+]], %[[V1:.+]] = dg.adam %[[W]], %[[GW]], %[[M]], %[[V]] {beta1 = 5.000000e-01 : f64, beta2 = 2.500000e-01 : f64, epsilon = 1.250000e-01 : f64, {{.*}}weight_decay = 0.000000e+00 : f64}
    // ADAM-NEXT: dg.update %[[W1]] {param = "w",
    // ADAM-NEXT: dg.update %[[M1]] {param = "w.adam_m",
    // ADAM-NEXT: dg.update %[[V1]] {param = "w.adam_v",

    // A parameter whose rate is another has the factor by which it differs from the optimizer's.
    // ADAMW: dg.adam {{.*}}decoupled
    // ADAMW-NOT: lr_factor
    // ADAMW-SAME: weight_decay = 1.000000e-02 : f64}
    // ADAMW: dg.adam {{.*}}lr_factor = 2.000000e+00 : f64

    // CHECK-NOT: {{dg.update.*"cold"}}
    // CHECK: dg.return %[[LOSS]] {names = ["loss"]} : (tensor<f32>) -> ()
    dg.return %loss, %gw, %gb {names = ["loss", "grad w", "grad b"]} : (tensor<f32>, tensor<4xf32>, tensor<2xf64>) -> ()
  }
}
