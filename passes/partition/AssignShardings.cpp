// SPDX-License-Identifier: Apache-2.0
// Gives every operand and result its sharding. One sweep in program order: over the tensor axis a forward op is cut as
// its attribute dg.cut says; all else is cut along the factor that most bytes of its operands are cut along already,
// and a gradient whose operands are whole as its parameter is.
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/rules/ShardingRules.h"
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/GraphOrder.h"
#include "passes/partition/Sharding.h"
#include "passes/shape/SampleRows.h"
#include "passes/split/ValueMemory.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_ASSIGNSHARDINGS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Which mesh axis cuts each factor of an op ("" = none).
using FactorAxes = SmallVector<StringRef>;

/// Whether a partial sum over `axis` is reduced before this cast because its bytes are fewer there. Over data that
/// waits for the update, so that it happens once a step.
bool isReducedBefore(Operation *op, StringAttr axis) {
  auto cast = dyn_cast<CastOp>(op);
  return cast && isHalf(tensorOf(cast.getInput()).getElementType()) && !isHalf(cast.getTo()) &&
         (axis != "data" || getPlace(op).getPhase() == Phase::update);
}

/// Memory of a parameter under another shape or type: lies as its reader needs it.
bool isViewOfParameter(Operation *op) {
  return (isView(op) || isa<CastOp>(op)) && op->getOperand(0).getDefiningOp<ParameterOp>();
}

bool hasFactor(ArrayRef<SmallVector<int32_t, 2>> dims, int32_t factor) {
  return llvm::any_of(dims, [&](ArrayRef<int32_t> factors) { return llvm::is_contained(factors, factor); });
}

/// How a parameter lies, in all graphs of a module.
struct ParameterPlace {
  ShardingAttr used;    ///< by forward and backward ops
  ShardingAttr updated; ///< by the ops of its update; with ZeRO cut over data where `used` is not
  ShardingAttr kept;    ///< from step to step
};

class Assignment {
public:
  Assignment(GraphOp graph, const plan::Mesh &mesh, int64_t zero, llvm::StringMap<ParameterPlace> &parameters)
      : graph(graph), mesh(mesh), zero(zero), parameters(parameters), context(graph.getContext()) {
    for (auto update : graph.getBody().front().getOps<UpdateOp>())
      updated.insert(update.getParam());
    findGradients();
  }

  /// Takes what was decided about the tensor axis.
  LogicalResult takeCuts() {
    for (Operation &op : graph.getBody().front()) {
      CutAttr cut = takeCut(&op);
      if (!cut)
        continue;
      std::optional<int32_t> factor = cut.getOf() == CutOf::whole ? int32_t(-1) : chosenFactor(&op, cut);
      if (!factor)
        return op.emitOpError() << "cannot be cut over tensor=" << mesh.sizeOf("tensor") << " along dimension "
                                << cut.getDim() << " of " << stringifyCutOf(cut.getOf()) << " " << cut.getIndex()
                                << ": expected one that its sharding rule can cut so many ways";
      chosen[&op] = *factor;
    }
    return success();
  }

  LogicalResult run() {
    for (BlockArgument argument : graph.getBody().getArguments()) {
      auto type = tensorOf(argument);
      if (type.getRank() > 0 && type.getDimSize(0) % mesh.sizeOf("data") != 0)
        return graph.emitOpError() << "input '" << graph.getInputName(argument.getArgNumber()) << "' has "
                                   << type.getDimSize(0)
                                   << " rows, which do not divide over data=" << mesh.sizeOf("data");
      shardings[argument] = inputSharding(type, mesh);
    }
    for (Operation &op : graph.getBody().front()) {
      if (auto parameter = dyn_cast<ParameterOp>(op)) {
        if (auto known = parameters.find(parameter.getParam()); known != parameters.end())
          shardings[parameter.getResult()] = known->second.used;
      } else if (isViewOfFreeParameter(&op)) {
        continue; // lies as its first user needs it
      } else if (auto ruled = dyn_cast<ShardingRuleOp>(op)) {
        assign(ruled);
      } else {
        assignWithoutRule(&op);
      }
    }
    for (Operation &op : graph.getBody().front())
      if (isViewOfParameter(&op))
        fixFree(op.getResult(0), wholeSharding(context, tensorOf(op.getResult(0)).getRank()));
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>()) {
      fixFree(parameter.getResult(), wholeSharding(context, tensorOf(parameter.getResult()).getRank()));
      setPlace(parameter, withShardings(getPlace(parameter), parameters.lookup(parameter.getParam()).kept));
    }
    return success();
  }

  /// The names of the results with a row for each sample. Where ranks share the batch, those that are cut so.
  SmallVector<Attribute> sampleRows() {
    SmallVector<Attribute> names;
    ReturnOp end = graph.getReturn();
    for (auto [index, isPerSample] : llvm::enumerate(findSampleRows(graph))) {
      ShardingAttr present = shardings.lookup(end.getOperand(index));
      bool isCut = present && !present.getDims().empty() && present.getDims()[0] == "data";
      if (mesh.sizeOf("data") > 1 ? isCut : isPerSample)
        names.push_back(StringAttr::get(context, end.getResultName(index)));
    }
    return names;
  }

private:
  /// Returns and updates: results leave the graph whole, but rows of samples stay on the rank whose samples they
  /// belong to; new values lie as their parameter does.
  void assignWithoutRule(Operation *op) {
    SmallVector<ShardingAttr> all;
    for (Value operand : op->getOperands()) {
      ShardingAttr needed = wholeSharding(context, tensorOf(operand).getRank());
      if (auto update = dyn_cast<UpdateOp>(op))
        needed = parameters.lookup(update.getParam()).kept;
      ShardingAttr present = shardings.lookup(operand);
      if (isa<ReturnOp>(op) && isOfMicrobatch(graph, operand) && present && !present.getDims().empty() &&
          present.getDims()[0] == "data")
        needed = inputSharding(tensorOf(operand), mesh);
      all.push_back(needed);
    }
    setPlace(op, withShardings(getPlace(op), all));
  }

  void assign(ShardingRuleOp op) {
    for (Value operand : op->getOperands())
      followPlaced(operand);
    ShardingRule rule = op.getShardingRule();
    FactorAxes axes(rule.factorSizes.size());
    for (plan::Axis axis : {plan::Axis::data, plan::Axis::tensor}) {
      const int64_t size = mesh.sizeOf(axis);
      if (size == 1)
        continue;
      std::optional<int32_t> factor;
      if (auto choice = chosen.find(op); choice != chosen.end() && axis == plan::Axis::tensor) {
        if (choice->second >= 0 && canCut(rule, axes, choice->second, size))
          factor = choice->second;
      } else {
        factor = vote(op, rule, axes, axis);
      }
      if (factor)
        axes[*factor] = nameOf(axis);
    }

    auto dimsOf = [&](ArrayRef<SmallVector<int32_t, 2>> dims) {
      SmallVector<StringAttr> cut;
      for (ArrayRef<int32_t> factors : dims)
        cut.push_back(StringAttr::get(context, factors.empty() ? "" : axes[factors.front()]));
      return cut;
    };
    SmallVector<StringAttr> carried = carriedPartials(op, axes);
    SmallVector<ShardingAttr> all;
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
      auto needed = ShardingAttr::get(context, dimsOf(dims), carried);
      fixFree(operand, needed);
      all.push_back(needed);
    }
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
      SmallVector<StringAttr> partial(carried);
      for (auto [factor, axis] : llvm::enumerate(axes))
        if (!axis.empty() && !hasFactor(dims, int32_t(factor)))
          partial.push_back(StringAttr::get(context, axis));
      shardings[result] = ShardingAttr::get(context, dimsOf(dims), partial);
      all.push_back(shardings[result]);
    }
    setPlace(op, withShardings(getPlace(op), all));
  }

  /// What the backward pass makes for a parameter: what its update reads, and what is cast to that or added up to it.
  void findGradients() {
    for (Operation &op : llvm::reverse(graph.getBody().front())) {
      StringAttr parameter;
      if (isa<ElementwiseOp>(op) && isLinear(&op)) // rounded for the sum over ranks, or added up
        parameter = gradientOf.lookup(op.getResult(0));
      if (!parameter && getPlace(&op).getPhase() == Phase::update)
        parameter = getPlace(&op).getLabel();
      if (parameter && !isa<ReturnOp>(op))
        for (Value operand : op.getOperands())
          gradientOf.try_emplace(operand, parameter);
    }
  }

  /// Where every rank has the operands whole and only the update of a cut parameter reads the result, each rank makes
  /// the part that it keeps, if that saves more than it takes to cut the operands.
  std::optional<int32_t> cutOfGradient(ShardingRuleOp op, const ShardingRule &rule, const FactorAxes &axes,
                                       plan::Axis axis) const {
    StringAttr parameter =
        getPlace(op).getPhase() == Phase::backward ? gradientOf.lookup(op->getResult(0)) : StringAttr();
    auto known = parameter ? parameters.find(parameter.getValue()) : parameters.end();
    if (known == parameters.end() || known->second.used.getDims().size() != rule.results[0].size())
      return std::nullopt;
    for (auto [cut, factors] : llvm::zip_equal(known->second.used.getDims(), rule.results[0]))
      if (cut == nameOf(axis) && !factors.empty() && canCut(rule, axes, factors.front(), mesh.sizeOf(axis))) {
        int64_t cutBytes = 0;
        for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
          cutBytes += hasFactor(dims, factors.front()) ? bytesOf(operand) : 0;
        auto classed = dyn_cast<PrecisionOp>(op.getOperation());
        const bool isProduct = classed && classed.getPrecisionClass() == PrecisionClass::product;
        return isProduct || cutBytes < bytesOf(op->getResult(0)) ? std::optional(factors.front()) : std::nullopt;
      }
    return std::nullopt;
  }

  /// The factor along which most bytes of the operands are cut over the axis already. An update is cut as its parameter
  /// says, whatever the gradient, so that no parameter travels.
  std::optional<int32_t> vote(ShardingRuleOp op, const ShardingRule &rule, const FactorAxes &axes, plan::Axis axis) {
    SmallVector<double> votes(rule.factorSizes.size(), 0);
    bool isUpdate = getPlace(op).getPhase() == Phase::update;
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
      ShardingAttr present = shardings.lookup(operand), wanted = isUpdate ? wantedByUpdate(op, operand) : present;
      if (!wanted && !present)
        continue;
      bool isUpdated = isUpdate && (wanted || operand.getDefiningOp<ParameterOp>());
      double weight = isUpdated ? std::numeric_limits<double>::infinity() : double(bytesOf(operand));
      for (auto [cut, factors] : llvm::zip_equal((wanted ? wanted : present).getDims(), dims))
        if (cut == nameOf(axis) && !factors.empty() && canCut(rule, axes, factors.front(), mesh.sizeOf(axis)))
          votes[factors.front()] += weight;
    }
    auto best = std::max_element(votes.begin(), votes.end());
    if (best == votes.end() || *best == 0)
      return cutOfGradient(op, rule, axes, axis);
    return int32_t(best - votes.begin());
  }

  /// What the op of an update works on (the gradient, the state, the parameter itself) as its parameter is updated.
  ShardingAttr wantedByUpdate(Operation *op, Value operand) const {
    auto known = parameters.find(getPlace(op).getLabel().getValue());
    if (zero == 0 || known == parameters.end() ||
        size_t(tensorOf(operand).getRank()) != known->second.updated.getDims().size())
      return {};
    return known->second.updated;
  }

  /// `used`, and where ZeRO asks for it cut over data along the first whole dimension that divides evenly. What is not
  /// trained, and the optimizer's own state, lies as its users need it.
  ParameterPlace placeOf(ParameterOp parameter, ShardingAttr used) const {
    bool isTrained = !parameter.getState() && updated.contains(parameter.getParam());
    SmallVector<StringAttr> dims(used.getDims());
    int64_t data = mesh.sizeOf("data");
    if (zero > 0 && isTrained && data > 1)
      for (auto [cut, size] : llvm::zip_equal(dims, cast<RankedTensorType>(parameter.getType()).getShape()))
        if (cut.empty() && size % data == 0) {
          cut = StringAttr::get(context, "data");
          break;
        }
    auto cut = ShardingAttr::get(context, dims, used.getPartial());
    return {used, cut, zero == 3 ? cut : used};
  }

  /// A factor can be cut where it divides evenly and is the major one of every dimension that holds it.
  static bool canCut(const ShardingRule &rule, const FactorAxes &axes, int32_t factor, int64_t size) {
    return axes[factor].empty() && rule.factorSizes[factor] % size == 0 && isMajorEverywhere(rule, factor);
  }

  /// The factor of the dimension; nothing where there is none that can be cut.
  std::optional<int32_t> chosenFactor(Operation *op, CutAttr cut) const {
    auto ruled = dyn_cast<ShardingRuleOp>(op);
    if (!ruled)
      return std::nullopt;
    ShardingRule rule = ruled.getShardingRule();
    const auto &uses = cut.getOf() == CutOf::result ? rule.results : rule.operands;
    const size_t index = size_t(cut.getIndex()), dim = size_t(cut.getDim());
    if (index >= uses.size() || dim >= uses[index].size() || uses[index][dim].empty())
      return std::nullopt;
    int32_t factor = uses[index][dim].front();
    bool canBe = canCut(rule, FactorAxes(rule.factorSizes.size()), factor, mesh.sizeOf("tensor"));
    return canBe ? std::optional(factor) : std::nullopt;
  }

  /// Axes over which all operands are partial sums and the op may stay one too.
  SmallVector<StringAttr> carriedPartials(Operation *op, const FactorAxes &axes) {
    if (!isLinear(op))
      return {};
    SmallVector<StringAttr> common;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      auto known = shardings.find(operand);
      ArrayRef<StringAttr> partial = known == shardings.end() ? ArrayRef<StringAttr>() : known->second.getPartial();
      if (index == 0)
        common.assign(partial.begin(), partial.end());
      else
        llvm::erase_if(common, [&](StringAttr axis) { return !llvm::is_contained(partial, axis); });
    }
    llvm::erase_if(common, [&](StringAttr axis) {
      return llvm::is_contained(axes, axis.getValue()) || isReducedBefore(op, axis);
    });
    return common;
  }

  bool isViewOfFreeParameter(Operation *op) { return isViewOfParameter(op) && !shardings.contains(op->getOperand(0)); }

  /// A reshape or cast that waits for its first user lies as its parameter does, where another user has placed that.
  void followPlaced(Value value) {
    Operation *producer = value.getDefiningOp();
    if (producer && isViewOfParameter(producer) && !shardings.contains(value) && !isViewOfFreeParameter(producer))
      assign(cast<ShardingRuleOp>(producer));
  }

  /// A parameter that nobody has placed, or a reshape or cast of one, lies as its first user needs it.
  void fixFree(Value value, ShardingAttr needed) {
    followPlaced(value);
    Operation *producer = value.getDefiningOp();
    if (!producer || shardings.contains(value))
      return;
    if (auto parameter = dyn_cast<ParameterOp>(producer)) {
      shardings[value] = needed;
      parameters[parameter.getParam()] = placeOf(parameter, needed);
      return;
    }
    if (!isViewOfFreeParameter(producer))
      return;
    ShardingRule rule = cast<ShardingRuleOp>(producer).getShardingRule();
    SmallVector<StringAttr> cut(rule.operands[0].size(), StringAttr::get(context, ""));
    SmallVector<StringAttr> kept(needed.getDims().size(), StringAttr::get(context, ""));
    for (auto [dim, axis] : llvm::enumerate(needed.getDims()))
      for (auto [operandDim, factors] : llvm::enumerate(rule.operands[0]))
        if (!axis.empty() && !factors.empty() && !rule.results[0][dim].empty() &&
            factors.front() == rule.results[0][dim].front() &&
            rule.factorSizes[factors.front()] % mesh.sizeOf(axis.str()) == 0) {
          cut[operandDim] = axis;
          kept[dim] = axis;
        }
    fixFree(producer->getOperand(0), ShardingAttr::get(context, cut, {}));
    shardings[value] = ShardingAttr::get(context, kept, {});
    setPlace(producer, withShardings(getPlace(producer), {shardings[producer->getOperand(0)], shardings[value]}));
  }

  GraphOp graph;
  const plan::Mesh &mesh;
  const int64_t zero;
  llvm::StringMap<ParameterPlace> &parameters;
  llvm::StringSet<> updated; ///< parameters that this graph gives a new value
  MLIRContext *context;
  llvm::DenseMap<Value, ShardingAttr> shardings;
  llvm::DenseMap<Value, StringAttr> gradientOf; ///< the name of the parameter
  llvm::DenseMap<Operation *, int32_t> chosen;  ///< the factor to cut over the tensor axis; below 0: none
};

struct AssignShardingsPass : impl::AssignShardingsBase<AssignShardingsPass> {
  using AssignShardingsBase::AssignShardingsBase;

  void runOnOperation() override {
    const plan::Mesh mesh = getMesh(getOperation());
    llvm::StringMap<ParameterPlace> parameters;
    for (GraphOp graph : graphsTrainFirst(getOperation())) {
      Assignment assignment(graph, mesh, zero, parameters);
      if (failed(assignment.takeCuts()) || failed(assignment.run()))
        return signalPassFailure();
      SmallVector<Attribute> rows = graph.getSymName() == "loss" ? SmallVector<Attribute>() : assignment.sampleRows();
      if (graph.getSymName() == "infer" || !rows.empty())
        getOperation()->setAttr("dg.sample_rows", ArrayAttr::get(&getContext(), rows));
    }
  }
};

} // namespace
} // namespace dg::passes
