// SPDX-License-Identifier: Apache-2.0
// Types go from an op's operands to its results, one op after the other. Apart from the pass, because ops that run
// graphs of their own do the same inside of them.
#pragma once

#include "mlir/IR/Operation.h"

namespace dg::ir {

/// No tensor is so large that its elements, or the bytes of many such tensors, cannot be counted. Fails at the op.
mlir::LogicalResult checkTensorSize(mlir::Operation *op, mlir::Type type);

/// Gives the results of an op, which the verifier has seen, the types that follow from its operands. An op that infers
/// none keeps what it has. Fails at the op: where it does not fit its operands, where one of them has no type because
/// it is made behind the op or outside of its graph, or where a result is too large.
mlir::LogicalResult deduceResults(mlir::Operation *op);

} // namespace dg::ir
