// Products are in 16 bits and read casts of f32 parameters; what is elementwise follows; a norm keeps f32 parameters; a
// loss reads f32; an override by parameter keeps the head in f32.
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-mixed-precision=precision=bf16 | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: dg-opt %s --dg-deduce-types=batch=4 "--dg-mixed-precision=precision=f16 overrides=head.*=f32" | FileCheck %s --check-prefix=HEAD

// CHECK: module attributes {dg.precision = [#dg.precision<"h", "linear", bf16, "products sum in f32 whatever their factors have">, #dg.precision<"r", "relu", bf16,
// HEAD: #dg.precision<"p", "linear", f32, "--precision-override head.*=f32">
dg.graph @loss(%x: tensor<?x8xf32>, %y: tensor<?x3xf32>) {
  // CHECK: %[[W:.+]] = dg.parameter "w" tensor<6x8xf32>
  %w = dg.parameter "w" tensor<6x8xf32> uniform 0.5
  %g = dg.parameter "g" tensor<6xf32> constant 1.0
  %b = dg.parameter "b" tensor<6xf32> constant 0.0
  %v = dg.parameter "head.weight" tensor<3x6xf32> uniform 0.5
  // CHECK: %[[X:.+]] = dg.cast %{{.+}} {{.*}} -> tensor<4x8xbf16>
  // CHECK: %[[C:.+]] = dg.cast %[[W]] {{.*}}label = "w"{{.*}} -> tensor<6x8xbf16>
  // CHECK: %[[H:.+]] = dg.linear %[[X]], %[[C]] {{.*}} -> tensor<4x6xbf16>
  %h = dg.linear %x, %w
  // CHECK: dg.relu %[[H]] {{.*}} -> tensor<4x6xbf16>
  %r = dg.relu %h
  // CHECK: dg.layer_norm {{.*}} (tensor<4x6xbf16>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6xbf16>
  %n = dg.layer_norm %r, %g, %b
  // ALL: dg.linear {{.*}} -> tensor<4x3xbf16>
  // HEAD: dg.layer_norm {{.*}} -> tensor<4x6xf16>
  // HEAD: dg.cast {{.*}} (tensor<4x6xf16>) -> tensor<4x6xf32>
  // HEAD: dg.linear {{.*}} (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
  %p = dg.linear %n, %v
  // ALL: %[[F:.+]] = dg.cast {{.*}} -> tensor<4x3xf32>
  // ALL: dg.mse %[[F]], %{{.+}} -> tensor<f32>
  %loss = dg.mse %p, %y
  dg.return %loss
}
