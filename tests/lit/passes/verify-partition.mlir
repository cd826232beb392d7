// What PlanGraph and AssignShardings decide passes.
// RUN: dg-opt %s --dg-number-ops --dg-set-mesh=data=2 --dg-plan-graph --dg-assign-shardings --dg-verify-partition | FileCheck %s

// CHECK-LABEL: dg.graph @infer(
// CHECK: dg.relu {{.*}}stage = 0, shardings = <["data", ""], []>, <["data", ""], []>
dg.graph @infer(%x: tensor<8x6xf32>) typed {
  %y = dg.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  dg.return %y {names = ["y"]} : (tensor<8x6xf32>) -> ()
}
