// SPDX-License-Identifier: Apache-2.0
// Reading .mlirbc from strangers. Apart, because it takes a process: MLIR's reader trusts what it reads in places, and
// of damaged files one in a hundred ends the process that reads it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace dg::compiler {

/// Reads the bytecode in a child process, within limits of time and memory, and takes its module over as text with
/// locations. Null on failure, after one message on stderr. Call it while the process has one thread.
mlir::OwningOpRef<mlir::ModuleOp> readBytecode(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context);

} // namespace dg::compiler
