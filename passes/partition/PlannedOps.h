// SPDX-License-Identifier: Apache-2.0
// The ops that a searched plan decides about: ExtractModel gives them to the search, AssignStages and AssignShardings
// take its answer back in the same order.
#pragma once

#include "ir/ops/structure/GraphOps.h"

namespace dg::passes {

/// Forward ops in program order, without those that are made of parameters and constants alone: these are wherever
/// their readers need them.
inline llvm::SmallVector<mlir::Operation *> plannedOps(ir::GraphOp graph) {
  llvm::SmallVector<mlir::Operation *> planned;
  llvm::DenseSet<mlir::Value> parameterLike;
  for (mlir::Operation &op : graph.getBody().front()) {
    if (mlir::isa<ir::ReturnOp>(op) || ir::getPlace(&op).getPhase() != ir::Phase::forward)
      continue;
    if (llvm::all_of(op.getOperands(), [&](mlir::Value operand) { return parameterLike.contains(operand); }))
      parameterLike.insert(op.result_begin(), op.result_end());
    else
      planned.push_back(&op);
  }
  return planned;
}

} // namespace dg::passes
