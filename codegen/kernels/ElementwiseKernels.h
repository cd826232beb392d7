// SPDX-License-Identifier: Apache-2.0
// The scalar functions of elementwise ops, as code on vectors: what fusion into other kernels needs of them.
#pragma once

#include "codegen/emit/KernelBuilder.h"

#include "mlir/IR/Operation.h"

namespace dg::codegen {

/// The names of the ops that have a scalar function.
llvm::SmallVector<llvm::StringRef> elementFunctionNames();

/// Emits the op on vectors (or scalars) of its operands' elements; null where the op is not one element by element.
Value emitElementFunction(KernelBuilder &kernel, mlir::Operation *op, ValueRange operands);

/// Emits the elementwise ops of the op's region on vectors of its arguments' elements; gives what its dg.return has.
mlir::FailureOr<llvm::SmallVector<Value>> emitElementBody(KernelBuilder &kernel, mlir::Operation *op,
                                                          ValueRange operands);

} // namespace dg::codegen
