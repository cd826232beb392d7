// SPDX-License-Identifier: Apache-2.0
// Puts chains of elementwise ops into one kernel. An op joins the group of its only user when both have the same shape,
// whatever their element types: what is between them then never reaches memory. Constants of one element move into it.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct FuseElementwisePass : impl::FuseElementwiseBase<FuseElementwisePass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>()) {
      // From the back, so that an op is met after all its users.
      llvm::SmallPtrSet<Operation *, 16> taken;
      SmallVector<SetVector<Operation *>> groups;
      for (Operation &op : llvm::reverse(graph.getBody().front())) {
        if (!isa<ElementwiseOp>(op) || taken.contains(&op))
          continue;
        SetVector<Operation *> group = growFrom(&op, taken);
        taken.insert(group.begin(), group.end());
        if (group.size() > 1)
          groups.push_back(std::move(group));
      }
      for (const SetVector<Operation *> &group : groups)
        fuse(group);
    }
  }

private:
  static bool haveOneShape(Value a, Value b) { return tensorOf(a).getShape() == tensorOf(b).getShape(); }

  /// A number that every kernel may hold for itself.
  static bool isNumber(Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    return constant && tensorOf(value).getNumElements() == 1;
  }

  SetVector<Operation *> growFrom(Operation *root, const llvm::SmallPtrSetImpl<Operation *> &taken) {
    SetVector<Operation *> group;
    group.insert(root);
    for (size_t next = 0; next < group.size(); ++next)
      for (Value operand : group[next]->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || !isa<ElementwiseOp>(producer) || taken.contains(producer) || group.contains(producer) ||
            !haveOneShape(operand, root->getResult(0)))
          continue;
        if (llvm::all_of(producer->getUsers(), [&](Operation *user) { return group.contains(user); }))
          group.insert(producer);
      }
    return group;
  }

  void fuse(const SetVector<Operation *> &group) {
    Operation *root = group.front();
    SmallVector<Operation *> ordered(group.begin(), group.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    SetVector<Value> inputs, numbers;
    for (Operation *op : ordered)
      for (Value operand : op->getOperands())
        if (!operand.getDefiningOp() || !group.contains(operand.getDefiningOp()))
          (isNumber(operand) ? numbers : inputs).insert(operand);
    // A kernel takes the width of its vectors from an operand.
    if (inputs.empty())
      std::swap(inputs, numbers);
    OpBuilder builder(root);
    auto fused = builder.create<FusedOp>(root->getLoc(), root->getResultTypes(), inputs.getArrayRef(), getPlace(root));
    Block &body = fused.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
    builder.setInsertionPointToEnd(&body);
    for (Value number : numbers)
      builder.clone(*number.getDefiningOp(), mapping);
    for (Operation *op : ordered)
      builder.clone(*op, mapping);
    create<ReturnOp>(builder, root->getLoc(), ValueRange{mapping.lookup(root->getResult(0))}, ArrayAttr());
    root->replaceAllUsesWith(fused);
    for (Operation *op : llvm::reverse(ordered))
      op->erase();
  }
};

} // namespace
} // namespace dg::passes
