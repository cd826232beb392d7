// SPDX-License-Identifier: Apache-2.0
// Moves what an inference computes from parameters alone (weights in the order in which kernels read them, factors of
// batch norm) into a program of its own, "prepare", which runs once before the first step. Its results are inputs of
// the chunks that it was taken from.
#include "passes/Passes.h"
#include "passes/split/ValueMemory.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_HOISTPREPARATION
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Memory under a name: costs nothing to have in both programs.
bool isMemory(Operation *op) { return isMemoryOfTheJob(op) || isView(op); }

/// What is kept must not be larger than what it is made of.
bool isWorthKeeping(Operation *op) {
  auto elementsOf = [](ValueRange values) {
    int64_t elements = 0;
    for (Value value : values)
      elements += tensorOf(value).getNumElements();
    return elements;
  };
  return elementsOf(op->getResults()) <= elementsOf(op->getOperands());
}

struct HoistPreparationPass : impl::HoistPreparationBase<HoistPreparationPass> {
  void runOnOperation() override {
    SmallVector<GraphOp> chunks;
    for (auto graph : getOperation().getOps<GraphOp>()) {
      if (graph.getProgram() == "infer")
        chunks.push_back(graph);
      // Parameters that are trained in the same job do not stay as they were prepared.
      if (graph.getProgram() == "train")
        return;
    }
    for (GraphOp chunk : chunks)
      hoistFrom(chunk);
  }

private:
  void hoistFrom(GraphOp chunk) {
    llvm::SetVector<Operation *> prepared;
    DenseSet<Value> known; // from parameters alone
    for (Operation &op : chunk.getBody().front()) {
      if (isa<ReturnOp>(op) || !llvm::all_of(op.getOperands(), [&](Value v) { return known.contains(v); }))
        continue;
      if (!isMemory(&op)) {
        if (!isa<ReferenceOp>(op) || !isMemoryEffectFree(&op) || !isWorthKeeping(&op))
          continue;
        prepared.insert(&op);
      }
      known.insert(op.result_begin(), op.result_end());
    }
    // What is prepared and read by what is not; reshapes of it stay with their readers.
    SetVector<Value> kept;
    for (Operation *op : prepared)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !prepared.contains(user); }))
          kept.insert(result);
    if (kept.empty())
      return;

    int64_t stage = *chunk.getStage();
    OpBuilder builder(chunk);
    auto name = ("prepare." + Twine(stage) + "." + stringifyPhase(Phase::forward)).str();
    auto graph =
        builder.create<GraphOp>(chunk.getLoc(), builder.getStringAttr(name), builder.getArrayAttr({}),
                                builder.getArrayAttr({}), builder.getStringAttr("prepare"),
                                builder.getI64IntegerAttr(stage), PhaseAttr::get(&getContext(), Phase::forward));
    builder.setInsertionPointToEnd(&graph.getBody().emplaceBlock());
    IRMapping mapping;
    for (Operation &op : chunk.getBody().front())
      if (prepared.contains(&op) || (isMemory(&op) && isNeededBy(&op, prepared)))
        builder.clone(op, mapping);
    SmallVector<Value> results;
    SmallVector<Attribute> names;
    for (auto [number, value] : llvm::enumerate(kept)) {
      names.push_back(builder.getStringAttr("prepared#" + Twine(number)));
      results.push_back(mapping.lookup(value));
      Value input = chunk.addInput(cast<StringAttr>(names.back()).getValue(), value.getType());
      Value(value).replaceUsesWithIf(input, [&](OpOperand &use) { return !prepared.contains(use.getOwner()); });
    }
    create<ReturnOp>(builder, chunk.getLoc(), results, builder.getArrayAttr(names));
    // Users come after what they use.
    for (Operation *op : llvm::reverse(prepared))
      op->erase();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(chunk.getBody().front())))
      if (isMemory(&op) && op.use_empty())
        op.erase();
  }

  /// Whether a prepared op reads it, be it through reshapes.
  static bool isNeededBy(Operation *op, const llvm::SetVector<Operation *> &prepared) {
    SmallVector<Operation *> worklist{op};
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val()->getUsers()) {
        if (prepared.contains(user))
          return true;
        if (isView(user))
          worklist.push_back(user);
      }
    return false;
  }
};

} // namespace
} // namespace dg::passes
