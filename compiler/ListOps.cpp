// SPDX-License-Identifier: Apache-2.0
#include "compiler/ListOps.h"

#include "codegen/plan/OpListing.h"
#include "compiler/OpPages.h"
#include "ir/dialect/Dialect.h"

#include <limits>

namespace dg::compiler {

/// The line at which a page tells of the op.
static std::string headingOf(llvm::StringRef name) { return ("\n### `dg." + name + "`\n").str(); }

/// Its section of the reference.
static Result<std::string> describeOp(mlir::MLIRContext &context, llvm::StringRef name) {
  name.consume_front("dg.");
  const llvm::StringRef pages(opPages);
  if (size_t at = pages.find(headingOf(name)); at != llvm::StringRef::npos) {
    llvm::StringRef section = pages.substr(at + 1);
    return section.take_front(std::min(section.find("\n### ", 4), section.find("\n## ", 4))).rtrim().str() + "\n";
  }
  std::string nearest;
  unsigned least = std::numeric_limits<unsigned>::max();
  for (const codegen::OpListingRow &row : codegen::listOps(context))
    if (unsigned distance = name.edit_distance(llvm::StringRef(row.name).drop_front(3)); distance < least)
      least = distance, nearest = row.name.substr(3);
  return Status::error(ErrorKind::usage, "--list-ops {}: there is no such op; did you mean {}? --list-ops lists all",
                       name.str(), nearest);
}

Result<std::string> listOps(const std::string &name) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::DGDialect>();
  if (!name.empty())
    return describeOp(context, name);
  std::string text;
  llvm::raw_string_ostream stream(text);
  codegen::printOps(context, stream);
  return stream.str();
}

} // namespace dg::compiler
