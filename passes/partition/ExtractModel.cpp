// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/ExtractModel.h"

#include "ir/dialect/Locations.h"
#include "passes/partition/Sharding.h"
#include "passes/shape/SampleDims.h"
#include "passes/split/ValueMemory.h"

#include <set>

using namespace mlir;

namespace dg::passes {

namespace {

using namespace ir;
using partitioner::Model;
using partitioner::ModelOp;
using partitioner::ModelValue;
using partitioner::Work;

double elementsOf(Value value) { return double(tensorOf(value).getNumElements()); }

/// Costs are counted in elements of four bytes; the precision of a run scales them.
constexpr double countedBytes = 4;

class Extractor {
public:
  Extractor(GraphOp graph, SmallVectorImpl<Operation *> *ops) : graph(graph), ops(ops), sampleDims(graph) {}

  Model run() {
    model.isTraining = graph.getSymName() == "train";
    for (BlockArgument argument : graph.getBody().getArguments())
      if (auto type = tensorOf(argument); type.getRank() > 0)
        model.numSamples = std::max<int64_t>(1, type.getDimSize(0));
    for (Operation &op : graph.getBody().front()) {
      if (isa<ReturnOp>(op) || getPlace(&op).getPhase() != Phase::forward)
        continue;
      if (llvm::all_of(op.getOperands(), [&](Value operand) { return isParameterLike(operand); }))
        addParameterLike(&op);
      else
        addForward(&op);
    }
    findWeightGradients();
    for (Operation &op : graph.getBody().front())
      if (!isa<ReturnOp>(op) && getPlace(&op).getPhase() != Phase::forward)
        addLater(&op);
    return std::move(model);
  }

private:
  /// Values that are made of parameters and constants alone are where their readers need them.
  bool isParameterLike(Value value) const { return parameterOf.contains(value); }

  void addParameterLike(Operation *op) {
    auto root = op->getNumOperands() > 0 ? parameterOf.lookup(op->getOperand(0)) : dyn_cast<ParameterOp>(op);
    for (Value result : op->getResults())
      parameterOf[result] = root;
  }

  void addForward(Operation *op) {
    uint32_t index = uint32_t(model.ops.size());
    if (ops)
      ops->push_back(op);
    ModelOp made;
    StringRef label = getPlace(op).getLabel().getValue();
    made.kind = op->getName().getStringRef().str();
    made.name =
        (label.empty() ? Twine("op") + Twine(index) : Twine(label)).str() + "/" + op->getName().stripDialect().str();
    made.source = sourceOf(op->getLoc());
    made.origin = getPlace(op).getOrigin();
    auto ruled = dyn_cast<ShardingRuleOp>(op);
    ShardingRule rule = ruled ? ruled.getShardingRule() : emptyShardingRule(op);
    made.factorSizes.assign(rule.factorSizes.begin(), rule.factorSizes.end());
    const int32_t sampleFactor = sampleDims.follow(op, rule).factor.value_or(-1);
    for (size_t factor = 0; factor < rule.factorSizes.size(); ++factor)
      made.isCuttable.push_back(int32_t(factor) != sampleFactor && rule.factorSizes[factor] > 1 &&
                                isMajorEverywhere(rule, int32_t(factor)));
    made.isPerSample = sampleFactor >= 0;
    made.isView = isRearrangement(op);
    auto factorsOf = [&](ArrayRef<SmallVector<int32_t, 2>> dims) {
      std::vector<int32_t> firsts;
      for (ArrayRef<int32_t> factors : dims)
        firsts.push_back(factors.empty() || !made.isCuttable[factors.front()] ? -1 : factors.front());
      return firsts;
    };
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      const auto &dims = rule.operands[number];
      if (!isParameterLike(operand))
        made.operands.push_back({valueId(operand), factorsOf(dims), uint32_t(number)});
      else if (auto parameter = parameterOf.lookup(operand);
               parameter && counted.insert(parameter.getParam().str()).second) {
        made.parameters.push_back({parameter.getParam().str(), elementsOf(operand), factorsOf(dims), uint32_t(number)});
        model.parameterElements += elementsOf(operand);
      }
    }
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
      uint32_t id = valueId(result);
      model.values[id].producer = index;
      made.results.push_back({id, factorsOf(dims)});
    }
    made.forward = workOf(op, rule);
    // Of the parts of one op of the author, the one with the most work stands for its backward pass.
    auto [main, isFirst] = opOfOrigin.try_emplace(getPlace(op).getOrigin(), index);
    if (!isFirst && model.ops[main->second].forward.flops < made.forward.flops)
      main->second = index;
    model.ops.push_back(std::move(made));
  }

  uint32_t valueId(Value value) {
    auto [found, isNew] = valueIds.try_emplace(value, uint32_t(model.values.size()));
    if (!isNew)
      return found->second;
    ModelValue made;
    made.elements = elementsOf(value);
    made.isFloat = isa<FloatType>(tensorOf(value).getElementType());
    made.isPerSample = sampleDims.has(value);
    model.values.push_back(made);
    return found->second;
  }

  /// Two elementwise ops of one phase that become one kernel: what is between them never reaches memory.
  static bool isFusedAway(Value value) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !value.hasOneUse() || !isa<ElementwiseOp>(producer))
      return false;
    Operation *user = *value.getUsers().begin();
    return isa<ElementwiseOp>(user) && getPlace(user).getPhase() == getPlace(producer).getPhase();
  }

  Work workOf(Operation *op, const ShardingRule &rule) const {
    auto costed = dyn_cast<CostOp>(op);
    if (!costed || isView(op))
      return {};
    OpCost cost = costed.getCost();
    Work work;
    work.flops = cost.flops;
    work.bytes = cost.bytes;
    work.numKernels = 1;
    work.op = op->getName().getStringRef().str();
    double resultElements = 0;
    for (Value result : op->getResults())
      resultElements += elementsOf(result);
    if (isa<ElementwiseOp>(op)) {
      work.bytes = 0;
      for (Value operand : op->getOperands())
        work.bytes += isFusedAway(operand) ? 0 : elementsOf(operand) * countedBytes;
      work.bytes += isFusedAway(op->getResult(0)) ? 0 : resultElements * countedBytes;
      work.numKernels = isFusedAway(op->getResult(0)) ? 0 : 1;
      if (llvm::any_of(op->getOperands(), isFusedAway) || isFusedAway(op->getResult(0)))
        work.op = FusedOp::getOperationName();
    }
    // A product sums over a factor with a multiplication and an addition for each element.
    bool hasSum = llvm::any_of(llvm::seq<int32_t>(0, int32_t(rule.factorSizes.size())), [&](int32_t factor) {
      return rule.factorSizes[factor] > 1 && llvm::none_of(rule.results, [&](const auto &dims) {
               return llvm::any_of(dims,
                                   [&](ArrayRef<int32_t> factors) { return llvm::is_contained(factors, factor); });
             });
    });
    if (hasSum && cost.flops > 2 * resultElements)
      work.matrixFlops = cost.flops;
    return work;
  }

  /// Backward ops on which only updates depend: they may run any time before the update.
  void findWeightGradients() {
    for (Operation &op : llvm::reverse(graph.getBody().front())) {
      if (isa<ReturnOp>(op) || getPlace(&op).getPhase() != Phase::backward)
        continue;
      bool isLast = llvm::all_of(op.getUsers(), [&](Operation *user) {
        return isa<ReturnOp>(user) || getPlace(user).getPhase() == Phase::update || weightGradients.contains(user);
      });
      if (isLast)
        weightGradients.insert(&op);
    }
  }

  void addLater(Operation *op) {
    if (getPlace(op).getPhase() == Phase::update) {
      if (auto parameter = dyn_cast<ParameterOp>(op))
        model.stateElements += elementsOf(parameter.getResult());
      else if (auto costed = dyn_cast<CostOp>(op))
        model.updateElements += costed.getCost().bytes / countedBytes;
      return;
    }
    for (Value operand : op->getOperands())
      markSaved(operand);
    auto owner = opOfOrigin.find(getPlace(op).getOrigin());
    if (owner == opOfOrigin.end())
      return;
    auto ruled = dyn_cast<ShardingRuleOp>(op);
    Work work = workOf(op, ruled ? ruled.getShardingRule() : emptyShardingRule(op));
    ModelOp &forward = model.ops[owner->second];
    (weightGradients.contains(op) ? forward.weightGradient : forward.inputGradient) += work;
  }

  /// A reshape is no copy: what is kept is what it looks at.
  void markSaved(Value value) {
    value = memoryOf(value);
    Operation *producer = value.getDefiningOp();
    auto known = valueIds.find(value);
    if (producer && known != valueIds.end() && getPlace(producer).getPhase() == Phase::forward)
      model.values[known->second].isSaved = true;
  }

  GraphOp graph;
  SmallVectorImpl<Operation *> *ops;
  Model model;
  llvm::DenseMap<Value, uint32_t> valueIds;
  SampleDims sampleDims;
  llvm::DenseMap<Value, ParameterOp> parameterOf; ///< null for constants
  llvm::DenseMap<int64_t, uint32_t> opOfOrigin;
  llvm::DenseSet<Operation *> weightGradients;
  std::set<std::string> counted; ///< parameters that have an op
};

} // namespace

Model extractModel(GraphOp graph, SmallVectorImpl<Operation *> *ops) { return Extractor(graph, ops).run(); }

FailureOr<Model> extractModel(ModuleOp module) {
  auto graph = module.lookupSymbol<GraphOp>("train");
  if (!graph)
    graph = module.lookupSymbol<GraphOp>("infer");
  if (!graph)
    return module.emitError("has no graph to plan for, expected @train or @infer");
  return extractModel(graph);
}

} // namespace dg::passes
