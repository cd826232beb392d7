// SPDX-License-Identifier: Apache-2.0
// From kernels as loops and vectors to an LLVM module with the entry points of the kernel ABI.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace dg::codegen {

/// The attribute of a kernel's function that has its number of tiles. A function without it is only called by others.
inline constexpr llvm::StringLiteral tilesName = "dg.tiles";

/// Loads the dialects that kernels are written in and translated from.
void loadKernelDialects(mlir::MLIRContext &context);

/// Adds the number by which a shared object says which kernel ABI it follows. Once in all that is linked.
void addAbiVersion(mlir::ModuleOp module);

/// Rewrites the module to the LLVM dialect, adds for each kernel its entry point and tiles, and translates. Null after
/// an emitted error, which is a mistake of an emitter.
std::unique_ptr<llvm::Module> lowerToLlvm(mlir::ModuleOp module, llvm::LLVMContext &context);

} // namespace dg::codegen
