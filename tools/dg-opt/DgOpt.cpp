// SPDX-License-Identifier: Apache-2.0
// mlir-opt with DG's dialect and passes: the driver of the lit tests.
#include "ir/dialect/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  dg::passes::registerPasses();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::DialectRegistry registry;
  registry.insert<dg::ir::DGDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "DG graph optimizer\n", registry));
}
