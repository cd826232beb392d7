// SPDX-License-Identifier: Apache-2.0
// The region of elementwise ops that a fused op has.
#pragma once

#include "ir/Dialect.h"

namespace dg::ir {

/// Evaluates the elementwise ops of a region on the tensors of its arguments; the operands of its dg.return are the
/// results.
mlir::LogicalResult evaluateBody(mlir::Region &body, llvm::ArrayRef<HostTensor> operands,
                                 llvm::MutableArrayRef<HostTensor> results, const RunScalars &scalars);

} // namespace dg::ir
