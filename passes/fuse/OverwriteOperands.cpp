// SPDX-License-Identifier: Apache-2.0
// Marks ops that may write their result where an operand was. Chunks are in their final form here: whatever reads a
// value stands after its producer in the same chunk, or takes it by name in a chunk of a later phase.
#include "ir/ops/structure/CommunicationOps.h"
#include "passes/Passes.h"
#include "passes/split/ValueMemory.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_OVERWRITEOPERANDS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct OverwriteOperandsPass : impl::OverwriteOperandsBase<OverwriteOperandsPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      for (auto op : graph.getBody().front().getOps<OverwritingOp>())
        if (isReadLastBy(graph, op, op.getOverwritable().get()))
          op.setOverwrites(true);
  }

private:
  bool isReadLastBy(GraphOp graph, Operation *op, Value operand) {
    Value memory = memoryOf(operand);
    if (llvm::count_if(op->getOperands(), [&](Value other) { return memoryOf(other) == memory; }) != 1)
      return false;
    for (Operation *later = op->getNextNode(); later; later = later->getNextNode())
      if (!isView(later) && llvm::any_of(later->getOperands(), [&](Value other) { return memoryOf(other) == memory; }))
        return false;
    if (auto argument = dyn_cast<BlockArgument>(memory))
      return isMadeByAnEarlierChunk(graph, argument);
    return isComputed(memory);
  }

  /// In memory of the step.
  static bool isComputed(Value memory) {
    Operation *producer = memory.getDefiningOp();
    return producer && !isMemoryOfTheJob(producer) && !isa<AccumulatedOp>(producer);
  }

  /// And read by this chunk alone.
  bool isMadeByAnEarlierChunk(GraphOp graph, BlockArgument argument) {
    StringRef name = graph.getInputName(argument.getArgNumber());
    bool isMade = false;
    for (auto other : getOperation().getOps<GraphOp>()) {
      if (other == graph || other.getProgram() != graph.getProgram() || other.getStage() != graph.getStage())
        continue;
      for (BlockArgument read : other.getBody().getArguments())
        if (other.getInputName(read.getArgNumber()) == name)
          return false;
      auto end = cast<ReturnOp>(other.getBody().front().getTerminator());
      for (auto [index, value] : llvm::enumerate(end.getOperands()))
        if (end.getResultName(index) == name)
          isMade = isComputed(memoryOf(value)) && isGivenOnce(end, memoryOf(value));
    }
    return isMade;
  }

  /// Under one name only.
  static bool isGivenOnce(ReturnOp end, Value memory) {
    return llvm::count_if(end.getOperands(), [&](Value value) { return memoryOf(value) == memory; }) == 1;
  }
};

} // namespace
} // namespace dg::passes
