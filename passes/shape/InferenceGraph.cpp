// SPDX-License-Identifier: Apache-2.0
#include "passes/shape/InferenceGraph.h"

using namespace mlir;

namespace dg::passes {

FailureOr<ir::GraphOp> deriveForward(ir::GraphOp loss) {
  OwningOpRef<ir::GraphOp> graph = loss.clone();
  graph->setSymName("forward");
  ir::ReturnOp end = graph->getReturn();
  auto compared = end.getNumOperands() ? end.getOperand(0).getDefiningOp<ir::LossOp>() : ir::LossOp();
  if (!compared)
    return loss.getReturn().emitOpError("returns a value first that no loss op made: inference returns what the loss "
                                        "compares with its target; end the graph with a loss, or write @forward");
  OpBuilder builder(end);
  builder.create<ir::ReturnOp>(end.getLoc(), compared->getOperand(0), ArrayAttr(), ir::PlaceAttr());
  end.erase();
  Block &block = graph->getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!isa<ir::ReturnOp>(op) && op.use_empty())
      op.erase();
  for (unsigned index = block.getNumArguments(); index-- > 0;)
    if (block.getArgument(index).use_empty())
      graph->eraseInput(index);
  loss->getBlock()->push_back(graph.get());
  return graph.release();
}

} // namespace dg::passes
