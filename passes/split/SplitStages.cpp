// SPDX-License-Identifier: Apache-2.0
// Cuts each graph into chunks, one for each part of the model and phase that has work (where a backward pass is cut in
// two: one for the gradients of weights). A stage holds one part, or several. A value that leaves its chunk becomes
//   - a named result and input, within a stage and a micro-batch (an activation saved for the backward pass);
//   - a send and a receive, between stages;
//   - an accumulated sum, on its way into the update when a step has several micro-batches.
// With one micro-batch the update is part of the last chunk of its stage, so that gradients can leave while others are
// still being computed.
#include "ir/ops/structure/CommunicationOps.h"
#include "partitioner/schedule/Schedule.h"
#include "passes/Passes.h"
#include "passes/split/ValueMemory.h"
#include "passes/train/WeightGradients.h"

#include "mlir/IR/IRMapping.h"

#include <map>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// A part of the model and a phase: where an op runs. Ordered as the phases of a step are.
struct Spot {
  int64_t part = 0; ///< as a micro-batch goes through them; without several to a stage: the stage
  Phase phase = Phase::forward;
  bool isWeight = false; ///< of the backward phase: what may wait
  auto key() const { return std::make_tuple(phase, isWeight, part); }
  bool operator<(const Spot &other) const { return key() < other.key(); }
  bool operator==(const Spot &other) const { return key() == other.key(); }
};

class Cutter {
public:
  Cutter(GraphOp graph, bool isAccumulating, int64_t numStages, bool isFolded)
      : graph(graph), isAccumulating(isAccumulating), numStages(numStages), isFolded(isFolded) {}

  LogicalResult run() {
    hasBackward = llvm::any_of(graph.getBody().front(), [](Operation &op) {
      return !isa<ReturnOp>(op) && getPlace(&op).getPhase() == Phase::backward;
    });
    nameValues();
    for (Operation &op : graph.getBody().front()) {
      if (isa<ReturnOp>(op))
        continue;
      if (getPlace(&op).getStage() < 0)
        return op.emitOpError("has no stage: run --dg-plan-graph first");
      if (isMemoryOfTheJob(&op))
        continue;
      Spot spot = spotOf(&op);
      Operation *clone = cloneInto(spot, &op);
      for (auto [from, to] : llvm::zip_equal(op.getResults(), clone->getResults()))
        here[{from.getAsOpaquePointer(), spot}] = to;
    }
    // An input of inference that nothing reads, but a caller may give.
    for (BlockArgument argument : graph.getBody().getArguments())
      if (graph.getSymName() == "infer" && argument.use_empty())
        valueAt(Spot{}, argument);
    for (auto [index, value] : llvm::enumerate(graph.getReturn().getOperands()))
      addResult(value, graph.getReturn().getResultName(index));
    for (auto &[spot, chunk] : chunks)
      close(chunk);
    graph.erase();
    return success();
  }

private:
  struct Chunk {
    GraphOp graph;
    SmallVector<Value> results;
    SmallVector<std::string> names;
  };

  /// Where an op of the whole graph runs.
  Spot spotOf(Operation *op) const {
    PlaceAttr place = getPlace(op);
    Phase phase = place.getPhase();
    if (phase == Phase::update && isAccumulating)
      return updateOf(place.getStage());
    if (phase == Phase::update)
      phase = hasBackward ? Phase::backward : Phase::forward;
    return {place.getStage(), phase, phase == Phase::backward && isWeightGradient(op)};
  }

  /// The stage that a part of the model lies on.
  int64_t stageOf(Spot spot) const {
    return numStages == 0 ? spot.part : partitioner::stageOfChunk(uint32_t(spot.part), uint32_t(numStages), isFolded);
  }
  bool areTogether(Spot a, Spot b) const { return stageOf(a) == stageOf(b); }
  /// A stage has one update: it counts as its first part's.
  Spot updateOf(int64_t part) const { return {stageOf({part}), Phase::update}; }

  Chunk &chunkAt(Spot spot) {
    Chunk &chunk = chunks[spot];
    if (!chunk.graph) {
      OpBuilder builder(graph);
      int64_t stage = stageOf(spot);
      std::string name = (graph.getSymName() + "." + Twine(stage) + "." + stringifyPhase(spot.phase)).str();
      if (spot.part != stage)
        name += "." + std::to_string(spot.part);
      if (spot.isWeight)
        name += ".weights";
      chunk.graph = builder.create<GraphOp>(
          graph.getLoc(), builder.getStringAttr(name), builder.getArrayAttr({}), builder.getArrayAttr({}),
          graph.getSymNameAttr(), builder.getI64IntegerAttr(stage), PhaseAttr::get(builder.getContext(), spot.phase));
      if (spot.part != stage)
        chunk.graph.setPart(spot.part);
      chunk.graph.setWeightGradients(spot.isWeight);
      chunk.graph.getBody().emplaceBlock();
    }
    return chunk;
  }

  OpBuilder builderAt(Spot spot) { return OpBuilder::atBlockEnd(&chunkAt(spot).graph.getBody().front()); }

  Operation *cloneInto(Spot spot, Operation *op) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, valueAt(spot, operand));
    Operation *clone = builderAt(spot).clone(*op, mapping);
    clone->removeAttr(weightGradientName); // the chunk says it from here on
    return clone;
  }

  /// The value of the whole graph as the chunk at `spot` sees it; brings it there if it is not.
  Value valueAt(Spot spot, Value value) {
    auto known = here.find({value.getAsOpaquePointer(), spot});
    if (known != here.end())
      return known->second;
    return here[{value.getAsOpaquePointer(), spot}] = bring(spot, value);
  }

  Value bring(Spot spot, Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return chunkAt(spot).graph.addInput(graph.getInputName(argument.getArgNumber()), argument.getType());
    Operation *producer = value.getDefiningOp();
    Spot from = spotOf(producer);
    // Parameters and constants are read where they are used; only on another stage than their own are they sent.
    bool isLocalRead = isMemoryOfTheJob(producer) && (isa<ConstantOp, LiteralOp>(producer) || areTogether(from, spot));
    if (isLocalRead)
      return atStart(spot, producer)->getResult(0);
    if (isMemoryOfTheJob(producer)) // a parameter of another stage: its value travels with each micro-batch
      from = {from.part, Phase::forward};

    OpBuilder builder = builderAt(spot);
    if (areTogether(from, spot))
      return bringWithinStage(from, spot, value);
    // What the update of another stage needs is summed over micro-batches where it is made, and travels once.
    if (isAccumulating && spot.phase == Phase::update)
      from = updateOf(from.part);

    // Received in the phase in which it was made when it travels down the pipeline, so that later phases find it saved;
    // and before anything that may wait.
    Spot landing{spot.part, from.part < spot.part ? from.phase : spot.phase};
    if (!(landing == spot))
      return bringWithinStage(landing, spot, value);
    int64_t channel = numChannels++;
    Value made = valueAt(from, value);
    builderAt(from).create<SendOp>(value.getLoc(), made, builder.getI64IntegerAttr(channel),
                                   builder.getI64IntegerAttr(stageOf(spot)), placeAt(producer, from));
    return builder.create<ReceiveOp>(value.getLoc(), value.getType(), builder.getI64IntegerAttr(channel),
                                     builder.getI64IntegerAttr(stageOf(from)), placeAt(producer, spot));
  }

  /// From an earlier chunk of the same stage to a later one: by name, or summed on the way into the update.
  Value bringWithinStage(Spot from, Spot to, Value value) {
    std::string &name = names[value];
    Value made = valueAt(from, value);
    if (isAccumulating && to.phase == Phase::update) {
      Operation *producer = value.getDefiningOp();
      builderAt(from).create<AccumulateOp>(value.getLoc(), made, name, placeAt(producer, from));
      OpBuilder builder = builderAt(to);
      return builder.create<AccumulatedOp>(value.getLoc(), value.getType(), builder.getStringAttr(name),
                                           placeAt(producer, to));
    }
    Chunk &maker = chunkAt(from);
    if (!llvm::is_contained(maker.names, name)) {
      maker.results.push_back(made);
      maker.names.push_back(name);
    }
    return chunkAt(to).graph.addInput(name, value.getType());
  }

  Operation *atStart(Spot spot, Operation *op) {
    Block &block = chunkAt(spot).graph.getBody().front();
    Operation *clone = OpBuilder::atBlockBegin(&block).clone(*op);
    return clone;
  }

  PlaceAttr placeAt(Operation *producer, Spot spot) const {
    PlaceAttr place = withStage(withShardings(getPlace(producer), {}), stageOf(spot));
    return withOrigin(place, place.getOrigin(), spot.phase);
  }

  void addResult(Value value, StringRef name) {
    Operation *producer = value.getDefiningOp();
    Spot spot = producer ? spotOf(producer) : Spot{};
    // Losses and accuracies are sums over samples, complete only after the last micro-batch.
    if (isAccumulating && !isOfMicrobatch(graph, value))
      spot = updateOf(spot.part);
    Chunk &chunk = chunkAt(spot);
    chunk.results.push_back(valueAt(spot, value));
    chunk.names.push_back(name.str());
  }

  void close(Chunk &chunk) {
    OpBuilder builder = OpBuilder::atBlockEnd(&chunk.graph.getBody().front());
    SmallVector<Attribute> nameAttrs;
    for (const std::string &name : chunk.names)
      nameAttrs.push_back(builder.getStringAttr(name));
    create<ReturnOp>(builder, graph.getLoc(), chunk.results, builder.getArrayAttr(nameAttrs));
  }

  /// Unique names for values that cross chunks: the author's label where there is one.
  void nameValues() {
    llvm::StringMap<int> used;
    for (BlockArgument argument : graph.getBody().getArguments())
      used[graph.getInputName(argument.getArgNumber())] = 1;
    for (unsigned index = 0; index < graph.getReturn().getNumOperands(); ++index)
      used[graph.getReturn().getResultName(index)] = 1;
    for (Operation &op : graph.getBody().front())
      for (Value result : op.getResults()) {
        std::string name = (getPlace(&op).getLabel().getValue() + "/" + op.getName().stripDialect()).str();
        int count = used[name]++;
        names[result] = count == 0 ? name : name + "#" + std::to_string(count);
      }
  }

  GraphOp graph;
  bool isAccumulating;
  int64_t numStages; ///< 0: each part is a stage
  bool isFolded;
  bool hasBackward = false;
  int64_t numChannels = 0;
  std::map<Spot, Chunk> chunks;
  std::map<std::pair<void *, Spot>, Value> here;
  llvm::DenseMap<Value, std::string> names;
};

struct SplitStagesPass : impl::SplitStagesBase<SplitStagesPass> {
  using SplitStagesBase::SplitStagesBase;

  void runOnOperation() override {
    for (auto graph : llvm::make_early_inc_range(getOperation().getOps<GraphOp>()))
      if (failed(Cutter(graph, microbatches > 1, stages, folded).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace dg::passes
