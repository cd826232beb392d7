// Proves that --dg-add-loss gives a model of predictions targets of the type that the loss takes.
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-add-loss=loss=cross_entropy | FileCheck %s --check-prefix=CLASSES
// RUN: dg-opt %s --dg-deduce-types=batch=4 --dg-add-loss=loss=mse | FileCheck %s --check-prefix=NUMBERS

// CLASSES: dg.graph @loss(%{{.*}}: tensor<4x3xf32>, %[[Y:.*]]: tensor<4xi64>) typed attributes {input_names = ["x", "y"]}
// CLASSES: dg.cross_entropy %{{.*}}, %[[Y]]
// CLASSES: dg.return %{{.*}} {names = ["loss"]}
// NUMBERS: dg.graph @loss(%{{.*}}: tensor<4x3xf32>, %[[Y:.*]]: tensor<4x2xf32>)
// NUMBERS: dg.mse %{{.*}}, %[[Y]]
dg.graph @loss(%x: tensor<?x3xf32>) {
  %w = dg.parameter "w" tensor<2x3xf32> uniform 0.5
  %p = dg.linear %x, %w
  dg.return %p
}
