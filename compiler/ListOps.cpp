// SPDX-License-Identifier: Apache-2.0
#include "compiler/ListOps.h"

#include "codegen/plan/OpListing.h"
#include "ir/dialect/Dialect.h"

namespace dg::compiler {

int listOps() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::DGDialect>();
  codegen::printOps(context, llvm::outs());
  return 0;
}

} // namespace dg::compiler
