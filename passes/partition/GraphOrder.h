// SPDX-License-Identifier: Apache-2.0
// The order in which the partition passes take the graphs of a module.
#pragma once

#include "ir/ops/structure/GraphOps.h"

#include "mlir/IR/BuiltinOps.h"

namespace dg::passes {

/// The graph that trains comes first: what it decides of a parameter holds for the copies of its forward part.
inline llvm::SmallVector<ir::GraphOp> graphsTrainFirst(mlir::ModuleOp module) {
  llvm::SmallVector<ir::GraphOp> graphs;
  for (bool isTrain : {true, false})
    for (auto graph : module.getOps<ir::GraphOp>())
      if ((graph.getSymName() == "train") == isTrain)
        graphs.push_back(graph);
  return graphs;
}

} // namespace dg::passes
