// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/PlanGraph.h"

#include "partitioner/search/Conflict.h"
#include "passes/Passes.h"
#include "passes/UsageError.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/ExtractModel.h"
#include "passes/partition/GraphOrder.h"
#include "passes/partition/Pins.h"

#include <set>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_PLANGRAPH
#include "passes/Passes.h.inc"

namespace {

using namespace ir;
using partitioner::Configuration;
using partitioner::Model;
using partitioner::ModelOp;
using partitioner::SearchedPlan;

/// The author's ops that compute something: so many stages the model can have.
size_t countWorking(const Model &model) {
  std::set<int64_t> origins;
  for (const ModelOp &op : model.ops)
    if (op.forward.flops + op.inputGradient.flops + op.weightGradient.flops > 0)
      origins.insert(op.origin >= 0 ? op.origin : -2 - (&op - model.ops.data()));
  return origins.size();
}

bool canCutWeights(const Model &model, uint32_t tensor) {
  return llvm::any_of(model.ops, [&](const ModelOp &op) {
    return llvm::any_of(op.parameters, [&](const partitioner::ModelParameter &parameter) {
      return llvm::any_of(parameter.factors, [&](int32_t factor) {
        return factor >= 0 && op.isCuttable[size_t(factor)] && op.factorSizes[size_t(factor)] % tensor == 0;
      });
    });
  });
}

/// A factor as the dimension of the first result, or else operand, that it cuts: factors change with the rule.
CutAttr cutOf(MLIRContext *context, const ModelOp &op, int32_t choice) {
  auto dimOf = [&](const std::vector<int32_t> &factors) -> std::optional<int64_t> {
    auto found = llvm::find(factors, choice);
    return found == factors.end() ? std::nullopt : std::optional<int64_t>(found - factors.begin());
  };
  if (choice >= 0) {
    for (auto [index, use] : llvm::enumerate(op.results))
      if (auto dim = dimOf(use.factors))
        return CutAttr::get(context, CutOf::result, int64_t(index), *dim);
    for (const partitioner::ModelUse &use : op.operands)
      if (auto dim = dimOf(use.factors))
        return CutAttr::get(context, CutOf::operand, use.operand, *dim);
    for (const partitioner::ModelParameter &parameter : op.parameters)
      if (auto dim = dimOf(parameter.factors))
        return CutAttr::get(context, CutOf::operand, parameter.operand, *dim);
  }
  return CutAttr::get(context, CutOf::whole, 0, 0);
}

struct PlanGraphPass : impl::PlanGraphBase<PlanGraphPass> {
  using PlanGraphBase::PlanGraphBase;
  PlanGraphPass(PlanRequest given, GraphPlan *found) : request(std::move(given)), found(found) {
    microbatches = request.configuration.microbatches;
    chunks = request.configuration.chunksPerRank;
  }

  void runOnOperation() override {
    SmallVector<GraphOp> graphs = graphsTrainFirst(getOperation());
    if (!graphs.empty() && failed(plan(graphs)))
      signalPassFailure();
  }

private:
  LogicalResult plan(ArrayRef<GraphOp> graphs) {
    const plan::Mesh mesh = getMesh(getOperation());
    Configuration how = request.configuration;
    how.data = uint32_t(mesh.sizeOf("data"));
    how.tensor = uint32_t(mesh.sizeOf("tensor"));
    how.pipe = uint32_t(mesh.sizeOf("pipe"));
    how.microbatches = uint32_t(microbatches);
    how.chunksPerRank = uint32_t(chunks);
    const uint32_t numParts = how.pipe * how.chunksPerRank;
    SmallVector<Operation *> ops;
    Model model = extractModel(graphs.front(), &ops);
    model.isMicrobatch = true;
    std::vector<uint32_t> stages(ops.size(), 0);
    if (!ops.empty()) {
      FailureOr<SearchedPlan> best = search(graphs.front(), model, how, numParts);
      if (failed(best))
        return failure();
      stages = partitioner::stagesByOp(*best);
      if (how.tensor > 1)
        for (auto [op, own, choice] : llvm::zip_equal(ops, model.ops, partitioner::choicesByOp(*best)))
          setCut(op, cutOf(&getContext(), own, choice));
      markRecomputed(ops, model, *best, stages);
      if (found && numParts == how.pipe)
        *found = {partitioner::inOrderOf(model, *best), std::move(*best)};
    }
    placeStages(graphs, ops, stages, numParts);
    return success();
  }

  /// Of a stage that recomputes, what ends a segment is kept: from there the next segment is made again.
  static void markRecomputed(ArrayRef<Operation *> ops, const Model &model, const SearchedPlan &best,
                             ArrayRef<uint32_t> stages) {
    const std::vector<uint32_t> bounds = partitioner::findSegments(partitioner::inOrderOf(model, best));
    for (uint32_t position = 0; position < ops.size(); ++position) {
      const uint32_t op = best.order.empty() ? position : best.order[position];
      if (best.stages.isRecomputed[stages[op]] && !std::binary_search(bounds.begin(), bounds.end(), position + 1))
        setRecomputed(ops[op]);
    }
  }

  FailureOr<SearchedPlan> search(GraphOp graph, Model &model, const Configuration &how, uint32_t numParts) const {
    if (size_t working = countWorking(model); numParts > std::max<size_t>(1, working))
      return emitOpUsageError(graph)
             << "cannot be cut into pipe=" << how.pipe
             << (numParts > how.pipe ? " with " + std::to_string(numParts / how.pipe) + " chunks each" : "") << ": "
             << numParts << " pipeline stages were asked for, but the graph has only " << working
             << " ops that compute something; use at most pipe=" << std::max<size_t>(1, working);
    if (how.tensor > 1 && request.leastCutShare > 0 && !canCutWeights(model, how.tensor))
      return emitOpUsageError(graph) << "has no weight that tensor=" << how.tensor
                                     << " divides evenly: choose a size that divides the layers' outputs";
    std::vector<partitioner::Pin> pins;
    for (const std::string &text : request.pins) {
      Result<partitioner::Pin> pin = resolvePin(text, model);
      if (!pin)
        return graph.emitOpError() << pin.status().message();
      pins.push_back(std::move(*pin));
    }
    if (std::optional<Model> pinned = partitioner::applyPins(model, pins))
      model = std::move(*pinned);
    partitioner::CostModel costs(request.cluster ? *request.cluster : partitioner::hostCluster(how.numRanks()));
    partitioner::StageOptions options{request.memoryBytes, request.recompute, request.leastCutShare};
    std::optional<SearchedPlan> best = partitioner::searchParts(model, costs, how, options);
    if (!best) { // estimates of memory may miss; what a plan needs is known when it is made
      options.memoryBytes = std::numeric_limits<double>::infinity();
      best = partitioner::searchParts(model, costs, how, options);
    }
    if (!best)
      return graph.emitOpError() << "cannot be cut into pipe=" << how.pipe << ": it has only "
                                 << partitioner::findStagePlaces(model).size() + 1
                                 << " parts between which no op of the author is cut; use a smaller pipe axis";
    return std::move(*best);
  }

  /// Backward ops, updates and the ops of other graphs follow the forward op of their origin. What is made of
  /// parameters alone stands with its first reader; running statistics, which no forward op reads, with their update.
  void placeStages(ArrayRef<GraphOp> graphs, ArrayRef<Operation *> ops, ArrayRef<uint32_t> stages, uint32_t numParts) {
    llvm::DenseMap<int64_t, int64_t> stageOf; // by origin
    for (auto [op, stage] : llvm::zip_equal(ops, stages))
      stageOf[getPlace(op).getOrigin()] = stage;
    const llvm::DenseMap<int64_t, int64_t> decided = stageOf;
    GraphOp planned = graphs.front();
    for (Operation &op : llvm::reverse(planned.getBody().front())) {
      int64_t origin = getPlace(&op).getOrigin();
      if (isa<ReturnOp>(op) || getPlace(&op).getPhase() != Phase::forward || decided.contains(origin))
        continue;
      std::optional<int64_t> first, firstUpdate; // readers' stages
      for (Operation *user : op.getUsers()) {
        auto known = stageOf.find(getPlace(user).getOrigin());
        if (isa<ReturnOp>(user) || known == stageOf.end())
          continue;
        std::optional<int64_t> &least = getPlace(user).getPhase() == Phase::forward ? first : firstUpdate;
        least = std::min(least.value_or(known->second), known->second);
      }
      if (first || firstUpdate)
        stageOf[origin] = std::min(stageOf.try_emplace(origin, INT64_MAX).first->second, first ? *first : *firstUpdate);
    }
    for (GraphOp graph : graphs)
      for (Operation &op : graph.getBody().front()) {
        auto known = stageOf.find(getPlace(&op).getOrigin());
        setPlace(&op, withStage(getPlace(&op), known == stageOf.end() ? numParts - 1 : known->second));
      }
  }

  PlanRequest request;
  GraphPlan *found = nullptr;
};

} // namespace

std::unique_ptr<Pass> createPlanGraph(PlanRequest request, GraphPlan *found) {
  return std::make_unique<PlanGraphPass>(std::move(request), found);
}

} // namespace dg::passes
