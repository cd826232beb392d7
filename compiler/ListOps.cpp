// SPDX-License-Identifier: Apache-2.0
#include "compiler/ListOps.h"

#include "codegen/plan/OpListing.h"
#include "ir/dialect/Dialect.h"

namespace dg::compiler {

std::string listOps() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::DGDialect>();
  std::string text;
  llvm::raw_string_ostream stream(text);
  codegen::printOps(context, stream);
  return stream.str();
}

} // namespace dg::compiler
