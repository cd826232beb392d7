// SPDX-License-Identifier: Apache-2.0
// Runs forward ops again in the backward pass instead of keeping what they made, where memory is short (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016). A repetition is a copy of the op in the backward phase, just
// before its first reader there; which ops are worth it is chosen by RecomputeChoice.
#include "ir/ops/structure/CommunicationOps.h"
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"
#include "passes/split/RecomputeChoice.h"
#include "passes/split/ValueMemory.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_REMATERIALIZE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Whether a forward op may run again. Whoever sums values up over micro-batches, or hands them out, reads them as they
/// were made.
bool canRepeat(Operation *op) {
  return isMemoryEffectFree(op) && isa<CostOp>(op) &&
         !isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceShardOp>(op) &&
         llvm::none_of(op->getUsers(), [](Operation *user) {
           return isa<ReturnOp>(user) || getPlace(user).getPhase() == Phase::update;
         });
}

/// The forward pass of one stage and what follows it.
class StageStep {
public:
  StageStep(GraphOp graph, int64_t stage, double flopsPerByte) {
    for (bool isForward : {true, false})
      for (Operation &op : graph.getBody().front())
        if (!isa<ReturnOp>(op) && !isView(&op) && !isMemoryOfTheJob(&op) && getPlace(&op).getStage() == stage &&
            (getPlace(&op).getPhase() == Phase::forward) == isForward)
          add(&op, isForward, flopsPerByte);
  }

  /// The ops to run again.
  llvm::DenseSet<Operation *> choose(double savedBytes) const {
    std::vector<bool> repeated = chooseRepeated(step, savedBytes);
    llvm::DenseSet<Operation *> chosen;
    for (auto [op, isRepeated] : llvm::zip_equal(ops, repeated))
      if (isRepeated)
        chosen.insert(op);
    return chosen;
  }

private:
  void add(Operation *op, bool isForward, double flopsPerByte) {
    StepOp made;
    made.isForward = isForward;
    for (Value operand : op->getOperands()) {
      Value memory = memoryOf(operand);
      Operation *maker = memory.getDefiningOp();
      if (!maker || isMemoryOfTheJob(maker))
        continue;
      if (!values.contains(memory)) { // another stage sends it
        StepOp received;
        received.isForward = isForward;
        received.writes.push_back(addValue(memory));
        step.ops.push_back(std::move(received));
        ops.push_back(nullptr);
      }
      made.reads.push_back(values[memory]);
    }
    for (Value result : op->getResults())
      made.writes.push_back(addValue(result));
    if (auto costed = dyn_cast<CostOp>(op)) {
      OpCost cost = costed.getCost();
      made.cost = std::max(cost.flops / flopsPerByte, cost.bytes);
    }
    made.canRepeat = isForward && canRepeat(op);
    step.ops.push_back(std::move(made));
    ops.push_back(op);
  }

  uint32_t addValue(Value value) {
    step.bytes.push_back(double(bytesOf(value)));
    return values[value] = uint32_t(step.bytes.size() - 1);
  }

  Step step;
  std::vector<Operation *> ops; ///< null: a receive
  llvm::DenseMap<Value, uint32_t> values;
};

/// Copies chosen ops of one stage to where its backward pass first needs them. Later stages keep what they received in
/// the forward pass: they would have to wait for what this one makes in its backward pass, which comes after theirs.
class Repeater {
public:
  Repeater(const llvm::DenseSet<Operation *> &chosen, int64_t stage) : chosen(chosen), stage(stage) {}

  void run(GraphOp graph) {
    SmallVector<Operation *> readers;
    for (Operation &op : graph.getBody().front())
      if (!isa<ReturnOp>(op) && getPlace(&op).getPhase() == Phase::backward && getPlace(&op).getStage() == stage)
        readers.push_back(&op);
    for (Operation *reader : readers) {
      makeAvailable(reader);
      for (OpOperand &operand : reader->getOpOperands())
        operand.set(again.lookupOrDefault(operand.get()));
    }
  }

private:
  /// A chosen op, or a reshape of what one made.
  bool isRepeated(Value value) const {
    Operation *maker = memoryOf(value).getDefiningOp();
    return maker && chosen.contains(maker);
  }

  void makeAvailable(Operation *reader) {
    SmallVector<Operation *> needed;
    SmallVector<Operation *> pending{reader};
    llvm::DenseSet<Operation *> seen;
    while (!pending.empty())
      for (Value operand : pending.pop_back_val()->getOperands())
        if (isRepeated(operand) && !again.contains(operand) && seen.insert(operand.getDefiningOp()).second) {
          needed.push_back(operand.getDefiningOp());
          pending.push_back(operand.getDefiningOp());
        }
    llvm::sort(needed, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    OpBuilder builder(reader);
    for (Operation *op : needed) {
      Operation *copy = builder.clone(*op, again);
      PlaceAttr place = getPlace(op);
      copy->setAttr(placeName, withOrigin(place, place.getOrigin(), Phase::backward));
    }
  }

  const llvm::DenseSet<Operation *> &chosen;
  const int64_t stage;
  IRMapping again; ///< values of the forward pass → as they were made again
};

struct RematerializePass : impl::RematerializeBase<RematerializePass> {
  using RematerializeBase::RematerializeBase;

  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<GraphOp>("train");
    if (!train)
      return;
    std::map<int64_t, llvm::DenseSet<Operation *>> decided; // by stage
    for (Operation &op : train.getBody().front())
      if (takeRecomputed(&op) && canRepeat(&op))
        decided[getPlace(&op).getStage()].insert(&op);
    for (auto &[stage, ops] : decided)
      Repeater(ops, stage).run(train);
    for (auto [stage, bytes] : llvm::enumerate(saved))
      if (bytes > 0)
        Repeater(StageStep(train, int64_t(stage), flopsPerByte).choose(double(bytes)), int64_t(stage)).run(train);
  }
};

} // namespace
} // namespace dg::passes
