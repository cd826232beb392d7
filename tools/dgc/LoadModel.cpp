// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/LoadModel.h"

#include "ir/Families.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace dg::tools {

mlir::OwningOpRef<mlir::ModuleOp> loadModel(const std::string &path, mlir::MLIRContext &context) {
  if (ir::isFamilySpec(path)) {
    auto family = ir::buildFamily(path, context);
    return succeeded(family) ? std::move(*family) : nullptr;
  }
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    llvm::errs() << path << ": error: cannot be read (" << buffer.getError().message()
                 << "): give the path of a model in the dg dialect (.mlir or .mlirbc), or a built-in one: "
                 << ir::knownFamilies() << "\n";
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  return mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
}

} // namespace dg::tools
