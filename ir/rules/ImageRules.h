// SPDX-License-Identifier: Apache-2.0
// Sharding rule and cost that all convolutions share.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {

/// A convolution over factors n, o and c: places of each in the tensors [operand or result][dimension], by their
/// letters; dimensions of places stay whole.
ShardingRule imageRule(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> operands, llvm::StringRef result,
                       llvm::StringRef letters);

/// One multiplication and addition for each tap of the weight [o, c, …] at each place of the output.
OpCost tapCost(mlir::Operation *op, mlir::RankedTensorType output, mlir::RankedTensorType weight);

} // namespace dg::ir
