// SPDX-License-Identifier: Apache-2.0
// The bridge to the partitioner for pipeline stages: forward ops become a graph with costs, the cut comes back as
// stages.
#include "partitioner/search/Stages.h"
#include "passes/Passes.h"
#include "passes/partition/GraphOrder.h"
#include "passes/partition/Mesh.h"
#include "passes/partition/PlannedOps.h"
#include "passes/split/ValueMemory.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct AssignStagesPass : impl::AssignStagesBase<AssignStagesPass> {
  using AssignStagesBase::AssignStagesBase;

  void runOnOperation() override {
    FailureOr<plan::Mesh> parsed = parseMesh(mesh, getOperation().getLoc());
    if (failed(parsed))
      return signalPassFailure();
    numStages = parsed->sizeOf("pipe") * chunks;
    SmallVector<GraphOp> graphs = graphsTrainFirst(getOperation());
    if (graphs.empty())
      return;
    if (failed(stages.empty() ? cut(graphs.front(), parsed->numRanks()) : takeGiven(graphs.front())))
      return signalPassFailure();
    for (GraphOp graph : graphs)
      apply(graph);
  }

private:
  LogicalResult cut(GraphOp graph, int64_t numRanks) {
    partitioner::Graph costs;
    llvm::MapVector<int64_t, partitioner::Node> nodes; // by origin: an op of the author, with all that is made of it
    for (Operation &op : graph.getBody().front()) {
      if (isa<ReturnOp>(op))
        continue;
      PlaceAttr place = getPlace(&op);
      partitioner::Node &node = nodes[place.getOrigin()];
      if (auto costed = dyn_cast<CostOp>(op); costed && place.getPhase() != Phase::update) {
        OpCost cost = costed.getCost();
        node.flops += cost.flops;
        node.bytes += cost.flops > 0 ? cost.bytes : 0;
      }
      if (node.name.empty())
        node.name = op.getName().getStringRef().str();
    }
    llvm::DenseMap<int64_t, partitioner::NodeId> ids;
    for (auto &[origin, node] : nodes)
      ids[origin] = costs.addNode(node);
    llvm::DenseMap<Value, uint32_t> values;
    for (Operation &op : graph.getBody().front()) {
      Phase phase = getPlace(&op).getPhase();
      if (isa<ReturnOp>(op) || phase == Phase::backward)
        continue;
      for (Value operand : op.getOperands()) {
        Operation *producer = operand.getDefiningOp();
        // State that only an update reads stands where the update does.
        if (!producer || (phase == Phase::update && !isa<ParameterOp>(producer)) ||
            getPlace(producer).getOrigin() == getPlace(&op).getOrigin())
          continue;
        uint32_t number = values.try_emplace(operand, values.size()).first->second;
        costs.addEdge({ids.lookup(getPlace(producer).getOrigin()), ids.lookup(getPlace(&op).getOrigin()),
                       uint64_t(bytesOf(operand)), number});
      }
    }
    partitioner::CostModel model(partitioner::hostCluster(uint32_t(numRanks)));
    Result<std::vector<uint32_t>> stages = partitioner::balanceStages(costs, uint32_t(numStages), model);
    if (!stages)
      return graph.emitOpError() << "cannot be cut into pipe=" << numStages / chunks
                                 << (chunks > 1 ? " with " + std::to_string(chunks) + " chunks each" : "") << ": "
                                 << stages.status().message();
    for (auto [origin, id] : ids)
      stageOf[origin] = (*stages)[id];
    return success();
  }

  /// Stages as a search found them. What is made of parameters alone stands with its first reader.
  LogicalResult takeGiven(GraphOp graph) {
    SmallVector<Operation *> planned = plannedOps(graph);
    if (stages.size() != planned.size())
      return graph.emitOpError() << "was given " << stages.size() << " stages, expected one for each of its "
                                 << planned.size() << " forward ops that read more than parameters";
    llvm::DenseSet<int64_t> origins;
    for (auto [op, stage] : llvm::zip_equal(planned, stages)) {
      int64_t origin = getPlace(op).getOrigin();
      if (stage < 0 || stage >= numStages)
        return op->emitOpError() << "was given stage " << stage << ", expected 0 to " << numStages - 1;
      auto [known, isNew] = stageOf.try_emplace(origin, stage);
      if (known->second != stage)
        return op->emitOpError() << "was given stage " << stage << ", but another part of the same op stage "
                                 << known->second << ": expected one stage";
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (auto before = stageOf.find(getPlace(producer).getOrigin());
              before != stageOf.end() && before->second > stage)
            return op->emitOpError() << "was given stage " << stage << ", but reads a value of stage " << before->second
                                     << ": expected that every value goes forward";
      origins.insert(origin);
    }
    for (Operation &op : llvm::reverse(graph.getBody().front())) {
      int64_t origin = getPlace(&op).getOrigin();
      if (isa<ReturnOp>(op) || getPlace(&op).getPhase() != Phase::forward || origins.contains(origin))
        continue;
      for (Operation *user : op.getUsers())
        if (auto known = stageOf.find(getPlace(user).getOrigin());
            known != stageOf.end() && getPlace(user).getPhase() == Phase::forward && !isa<ReturnOp>(user)) {
          int64_t stage = known->second;
          auto [own, isNew] = stageOf.try_emplace(origin, stage);
          own->second = std::min(own->second, stage);
        }
    }
    return success();
  }

  void apply(GraphOp graph) {
    for (Operation &op : graph.getBody().front()) {
      auto found = stageOf.find(getPlace(&op).getOrigin());
      setPlace(&op, withStage(getPlace(&op), found == stageOf.end() ? numStages - 1 : found->second));
    }
  }

  int64_t numStages = 1;
  llvm::DenseMap<int64_t, int64_t> stageOf; ///< by origin
};

} // namespace
} // namespace dg::passes
