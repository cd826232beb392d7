// SPDX-License-Identifier: Apache-2.0
// What ops that run graphs of their own do with those graphs: infer, evaluate, price, differentiate and copy them.
#pragma once

#include "ir/ops/structure/ControlOps.h"
#include "ir/ops/structure/GraphOps.h"

namespace dg::ir {

ReturnOp returnOf(mlir::Region &body);

/// Gives the arguments of a body these types and infers those of its ops. Fails at the op that does not fit.
mlir::LogicalResult deduceBody(mlir::Region &body, llvm::ArrayRef<mlir::Type> arguments);

/// Runs a body once; what it returns.
mlir::FailureOr<llvm::SmallVector<HostTensor>> evaluateBody(mlir::Region &body, llvm::ArrayRef<HostTensor> arguments,
                                                            const RunScalars &scalars);

/// What `times` runs of a body cost.
OpCost bodyCost(mlir::Region &body, double times);

/// Builds the gradients of a body's arguments behind its ops, which stand before the builder's place: `grads` are those
/// of the values that it returns, null where nothing flows back. Fails at an op that has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiateBody(mlir::OpBuilder &builder, mlir::ValueRange arguments,
                                                                  llvm::ArrayRef<mlir::Operation *> ops,
                                                                  mlir::ValueRange returned,
                                                                  llvm::ArrayRef<mlir::Value> grads);

/// Copies the ops of a body to the builder's place, with these values for its arguments; returns what it returns.
llvm::SmallVector<mlir::Value> cloneBody(mlir::OpBuilder &builder, mlir::Region &body, mlir::ValueRange arguments,
                                         llvm::SmallVectorImpl<mlir::Operation *> &ops);

/// Whether a value of this type can have a gradient.
bool isReal(mlir::Type type);

} // namespace dg::ir
