// Parameters whose names match a pattern are frozen; state is not, which no optimizer trains anyway.
// RUN: dg-opt %s "--dg-freeze-parameters=patterns=features.*,head.b?as" | FileCheck %s

dg.graph @loss(%x: tensor<4xf32>) {
  // CHECK: dg.parameter "features.0.weight" {{.*}}{frozen}
  %a = dg.parameter "features.0.weight" tensor<4xf32> uniform 0.5
  // CHECK: dg.parameter "features.0.running_mean" {{.*}}{state}
  %m = dg.parameter "features.0.running_mean" tensor<4xf32> constant 0.0 {state}
  // CHECK: dg.parameter "head.weight" tensor<4xf32> uniform 5.000000e-01{{$}}
  %b = dg.parameter "head.weight" tensor<4xf32> uniform 0.5
  // CHECK: dg.parameter "head.bias" {{.*}}{frozen}
  %c = dg.parameter "head.bias" tensor<4xf32> uniform 0.5
  dg.return %x
}

// Statistics are named apart: weights of the same layer are trained.
// RUN: dg-opt %s --dg-freeze-parameters=statistics=features.* | FileCheck %s --check-prefix=STATISTICS
// STATISTICS: dg.parameter "features.0.weight" tensor<4xf32> uniform 5.000000e-01{{$}}
// STATISTICS: dg.parameter "features.0.running_mean" {{.*}}{frozen, state}
