// SPDX-License-Identifier: Apache-2.0
// Moves collectives and receives to where their operands are ready, so that they run beside what does not wait for
// them. Codegen starts each where it finds it, and finishes it at its first reader.
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_STARTCOMMUNICATIONEARLY
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct StartCommunicationEarlyPass : impl::StartCommunicationEarlyBase<StartCommunicationEarlyPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      startEarly(graph.getBody().front());
  }

private:
  static Operation *firstUser(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    return first;
  }

  static void startEarly(Block &block) {
    SmallVector<Operation *> communications;
    for (Operation &op : block)
      if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, ReceiveOp>(op))
        communications.push_back(&op);
    Operation *lastReceive = nullptr, *beforeLastGathered = nullptr;
    llvm::DenseMap<Operation *, Operation *> lastAfter;
    for (Operation *op : communications) {
      // A parameter that lies cut is gathered while the one before it is used, so that two are whole at a time.
      if (isa<AllGatherOp>(op) && op->getOperand(0).getDefiningOp<ParameterOp>()) {
        Operation *user = firstUser(op);
        if (beforeLastGathered && beforeLastGathered->isBeforeInBlock(op))
          op->moveBefore(beforeLastGathered);
        beforeLastGathered = user;
        continue;
      }
      if (isa<ReceiveOp>(op)) {
        lastReceive ? op->moveAfter(lastReceive) : op->moveBefore(&block.front());
        lastReceive = op;
        continue;
      }
      Operation *producer = op->getOperand(0).getDefiningOp();
      if (!producer)
        continue;
      Operation *&last = lastAfter[producer];
      op->moveAfter(last ? last : producer);
      last = op;
    }
  }
};

} // namespace
} // namespace dg::passes
