// SPDX-License-Identifier: Apache-2.0
// MLIR's diagnostics of one compilation become its messages. The handler belongs to the compilation's own context: two
// compilations never hear each other.
#pragma once

#include "compiler/Messages.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace dg::compiler {

class Diagnostics : public mlir::SourceMgrDiagnosticHandler {
public:
  /// `file` is the name of a model that has no lines (ONNX, a family), else empty: then a message quotes the line that
  /// it points to.
  Diagnostics(mlir::MLIRContext &context, std::string file, Messages &messages);

private:
  llvm::SourceMgr sources;
  std::string text; ///< of the diagnostic that is being rendered
  llvm::raw_string_ostream stream;
};

} // namespace dg::compiler
