// A pattern that matches nothing is a mistake of the user, and so are patterns that leave nothing to train.
// RUN: not dg-opt %s --dg-freeze-parameters=patterns=feature.* 2>&1 | FileCheck %s

// CHECK: error: has no parameter that 'feature.*' names, expected a pattern such as 'features.*' that matches the parameters to freeze
dg.graph @loss(%x: tensor<4xf32>) {
  %a = dg.parameter "features.0.weight" tensor<4xf32> uniform 0.5
  dg.return %a
}

// RUN: not dg-opt %s --dg-freeze-parameters=statistics=features.* 2>&1 | FileCheck %s --check-prefix=STATISTICS
// STATISTICS: error: has no running statistics that 'features.*' names, expected a pattern such as 'bn.*' that matches those of a batch norm

// RUN: not dg-opt %s --dg-freeze-parameters=patterns=features.* 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: has no parameter left to train: --freeze names them all
