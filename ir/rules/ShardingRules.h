// SPDX-License-Identifier: Apache-2.0
// Sharding rules that several families share.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {

/// The first `numDims` dimensions of operand 0 move together with the same dimensions of `operands` and `results`
/// (their numbers); everything else stays whole.
ShardingRule leadingRule(mlir::Operation *op, int64_t numDims, llvm::ArrayRef<unsigned> operands,
                         llvm::ArrayRef<unsigned> results);

/// Every dimension but `axis` moves together with that of the same number in all operands and results, which have one
/// rank.
ShardingRule lineRule(mlir::Operation *op, int64_t axis);

/// Ops through which a partial sum may pass unreduced where all their operands are partial, because they are linear in
/// them together (casts between floats up to rounding).
bool isLinear(mlir::Operation *op);

} // namespace dg::ir
