// SPDX-License-Identifier: Apache-2.0
// Reading .mlirbc from strangers. Apart, because it takes a process: MLIR's reader trusts what it reads in places, and
// of damaged files one in a hundred ends the process that reads it.
#pragma once

#include "compiler/Messages.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace dg::compiler {

/// Reads the bytecode in a child process, within limits of time and memory, and takes its module over as text with
/// locations. Fails with badInput after one diagnostic. Any thread, whatever the others do: the child uses nothing but
/// this context, which only this thread has, and memory, whose locks fork() takes over. What is left are the locks of
/// first-time initialisation in LLVM; a child that waits for one that another thread held is stopped and started again.
Result<mlir::OwningOpRef<mlir::ModuleOp>> readBytecode(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context,
                                                       Messages &messages);

} // namespace dg::compiler
