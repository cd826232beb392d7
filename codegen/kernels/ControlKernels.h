// SPDX-License-Identifier: Apache-2.0
// Kernels of ops that run graphs of their own: one function that calls the kernels of the graph's ops in order. Equal
// ops have one kernel inside and outside of bodies, whatever the number of trips.
#pragma once

#include "codegen/kernels/Kernels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"

namespace dg::codegen {

class KernelBuilder;

/// The kernels of the ops in a body.
using BodyKernels = llvm::DenseMap<mlir::Operation *, KernelSpec>;

/// Buffers that the kernel needs besides those of operands and results: one for each value of its body.
llvm::SmallVector<mlir::RankedTensorType> workspacesOf(mlir::Operation *op, const BodyKernels &kernels);

/// Writes the kernel, whose last buffers are the workspaces.
mlir::LogicalResult emitControl(KernelBuilder &kernel, mlir::Operation *op, const BodyKernels &kernels);

} // namespace dg::codegen
