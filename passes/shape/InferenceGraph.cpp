// SPDX-License-Identifier: Apache-2.0
#include "passes/shape/InferenceGraph.h"

using namespace mlir;

namespace dg::passes {

/// The loss, or the first term of it that an op for losses makes.
static ir::LossOp firstLossOf(Value value) {
  SmallVector<Value> next = {value};
  llvm::DenseSet<Value> seen;
  while (!next.empty()) {
    Value each = next.pop_back_val();
    Operation *op = each.getDefiningOp();
    if (!op || !seen.insert(each).second)
      continue;
    if (auto loss = dyn_cast<ir::LossOp>(op))
      return loss;
    for (Value operand : llvm::reverse(op->getOperands()))
      next.push_back(operand);
  }
  return {};
}

FailureOr<ir::GraphOp> deriveForward(ir::GraphOp loss) {
  OwningOpRef<ir::GraphOp> graph = loss.clone();
  graph->setSymName("forward");
  ir::ReturnOp end = graph->getReturn();
  auto compared = end.getNumOperands() ? firstLossOf(end.getOperand(0)) : ir::LossOp();
  if (!compared)
    return loss.getReturn().emitOpError(
        "returns a loss without an op for losses: inference returns what such an op, as "
        "dg.mse, compares with its target; use one, or write @forward");
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
