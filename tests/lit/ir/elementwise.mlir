// The elementwise ops read and print in the same form, and their types are deduced.
// RUN: dg-opt %s | FileCheck %s
// RUN: dg-opt %s --dg-deduce-types | FileCheck %s --check-prefix=TYPED
// RUN: dg-opt %s --dg-deduce-types --mlir-print-op-generic | dg-opt | FileCheck %s --check-prefix=TYPED

// CHECK-LABEL: dg.graph @unary
// TYPED-LABEL: dg.graph @unary
dg.graph @unary(%x: tensor<4x6xf32>) {
  // CHECK: dg.neg %
  // TYPED: dg.neg {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v0 = dg.neg %x
  // CHECK: dg.abs %
  // TYPED: dg.abs {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v1 = dg.abs %v0
  // CHECK: dg.sign %
  // TYPED: dg.sign {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v2 = dg.sign %v1
  // CHECK: dg.reciprocal %
  // TYPED: dg.reciprocal {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v3 = dg.reciprocal %v2
  // CHECK: dg.sqrt %
  // TYPED: dg.sqrt {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v4 = dg.sqrt %v3
  // CHECK: dg.rsqrt %
  // TYPED: dg.rsqrt {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v5 = dg.rsqrt %v4
  // CHECK: dg.exp %
  // TYPED: dg.exp {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v6 = dg.exp %v5
  // CHECK: dg.expm1 %
  // TYPED: dg.expm1 {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v7 = dg.expm1 %v6
  // CHECK: dg.log %
  // TYPED: dg.log {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v8 = dg.log %v7
  // CHECK: dg.log1p %
  // TYPED: dg.log1p {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v9 = dg.log1p %v8
  // CHECK: dg.sin %
  // TYPED: dg.sin {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v10 = dg.sin %v9
  // CHECK: dg.cos %
  // TYPED: dg.cos {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v11 = dg.cos %v10
  // CHECK: dg.tan %
  // TYPED: dg.tan {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v12 = dg.tan %v11
  // CHECK: dg.asin %
  // TYPED: dg.asin {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v13 = dg.asin %v12
  // CHECK: dg.acos %
  // TYPED: dg.acos {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v14 = dg.acos %v13
  // CHECK: dg.atan %
  // TYPED: dg.atan {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v15 = dg.atan %v14
  // CHECK: dg.sinh %
  // TYPED: dg.sinh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v16 = dg.sinh %v15
  // CHECK: dg.cosh %
  // TYPED: dg.cosh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v17 = dg.cosh %v16
  // CHECK: dg.tanh %
  // TYPED: dg.tanh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v18 = dg.tanh %v17
  // CHECK: dg.asinh %
  // TYPED: dg.asinh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v19 = dg.asinh %v18
  // CHECK: dg.acosh %
  // TYPED: dg.acosh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v20 = dg.acosh %v19
  // CHECK: dg.atanh %
  // TYPED: dg.atanh {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v21 = dg.atanh %v20
  // CHECK: dg.erf %
  // TYPED: dg.erf {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v22 = dg.erf %v21
  // CHECK: dg.floor %
  // TYPED: dg.floor {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v23 = dg.floor %v22
  // CHECK: dg.ceil %
  // TYPED: dg.ceil {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v24 = dg.ceil %v23
  // CHECK: dg.round %
  // TYPED: dg.round {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v25 = dg.round %v24
  // CHECK: dg.trunc %
  // TYPED: dg.trunc {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v26 = dg.trunc %v25
  // CHECK: dg.sigmoid %
  // TYPED: dg.sigmoid {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v27 = dg.sigmoid %v26
  // CHECK: dg.softplus %
  // TYPED: dg.softplus {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v28 = dg.softplus %v27
  // CHECK: dg.hard_sigmoid %
  // TYPED: dg.hard_sigmoid {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v29 = dg.hard_sigmoid %v28
  // CHECK: dg.hard_swish %
  // TYPED: dg.hard_swish {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v30 = dg.hard_swish %v29
  // CHECK: dg.silu %
  // TYPED: dg.silu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v31 = dg.silu %v30
  // CHECK: dg.softsign %
  // TYPED: dg.softsign {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v32 = dg.softsign %v31
  // CHECK: dg.elu %
  // TYPED: dg.elu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v33 = dg.elu %v32 {alpha = 1.5}
  // CHECK: dg.selu %
  // TYPED: dg.selu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v34 = dg.selu %v33
  // CHECK: dg.celu %
  // TYPED: dg.celu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v35 = dg.celu %v34
  // CHECK: dg.leaky_relu %
  // TYPED: dg.leaky_relu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v36 = dg.leaky_relu %v35
  // CHECK: dg.thresholded_relu %
  // TYPED: dg.thresholded_relu {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v37 = dg.thresholded_relu %v36
  // CHECK: dg.mish %
  // TYPED: dg.mish {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v38 = dg.mish %v37
  // CHECK: dg.gelu_erf %
  // TYPED: dg.gelu_erf {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v39 = dg.gelu_erf %v38
  // CHECK: dg.shrink %
  // TYPED: dg.shrink {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v40 = dg.shrink %v39 {bias = 0.5}
  // CHECK: dg.clip %
  // TYPED: dg.clip {{.*}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %v41 = dg.clip %v40 {max = 6.0}
  dg.return %v41
}

// CHECK-LABEL: dg.graph @binary
// TYPED-LABEL: dg.graph @binary
dg.graph @binary(%x: tensor<4x6xf32>, %y: tensor<6xf32>, %i: tensor<4x6xui8>, %f: tensor<4x1xi1>) {
  // CHECK: dg.pow %
  // TYPED: dg.pow {{.*}} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %pow = dg.pow %x, %y
  // CHECK: dg.mod %{{.*}}fmod
  %mod = dg.mod %pow, %y {fmod}
  // CHECK: dg.min %
  %min = dg.min %mod, %y
  // CHECK: dg.max %
  %max = dg.max %min, %y
  // CHECK: dg.prelu %
  %prelu = dg.prelu %max, %y
  // CHECK: dg.compare %{{.*}}predicate = "lt"
  // TYPED: dg.compare {{.*}} -> tensor<4x6xi1>
  %less = dg.compare %prelu, %y {predicate = "lt"}
  // CHECK: dg.logical_and %
  // TYPED: dg.logical_and {{.*}} : (tensor<4x6xi1>, tensor<4x1xi1>) -> tensor<4x6xi1>
  %and = dg.logical_and %less, %f
  // CHECK: dg.logical_or %
  %or = dg.logical_or %and, %f
  // CHECK: dg.logical_xor %
  %xor = dg.logical_xor %or, %f
  // CHECK: dg.logical_not %
  %not = dg.logical_not %xor
  // CHECK: dg.bit_and %
  // TYPED: dg.bit_and {{.*}} -> tensor<4x6xui8>
  %ba = dg.bit_and %i, %i
  // CHECK: dg.bit_or %
  %bo = dg.bit_or %ba, %i
  // CHECK: dg.bit_xor %
  %bx = dg.bit_xor %bo, %i
  // CHECK: dg.bit_not %
  %bn = dg.bit_not %bx
  // CHECK: dg.shift %
  %sh = dg.shift %bn, %i {right}
  // CHECK: dg.is_nan %
  // TYPED: dg.is_nan {{.*}} -> tensor<4x6xi1>
  %nan = dg.is_nan %x
  // CHECK: dg.is_inf %{{.*}}negative = false
  %inf = dg.is_inf %x {negative = false}
  // CHECK: dg.select %
  // TYPED: dg.select {{.*}} -> tensor<4x6xf32>
  %select = dg.select %not, %x, %y
  // CHECK: dg.cast %{{.*}}to = f16
  // TYPED: dg.cast {{.*}} -> tensor<4x6xf16>
  %cast = dg.cast %select {to = f16}
  dg.return %cast, %sh, %nan, %inf
}
