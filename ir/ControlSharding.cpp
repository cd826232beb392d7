// SPDX-License-Identifier: Apache-2.0
#include "ir/ControlSharding.h"
#include "ir/ElementwiseOps.h"
#include "ir/GraphOps.h"
#include "ir/ShapeOps.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace dg::ir {

namespace {

/// Dimensions of the body's values in classes that are cut together.
class BodyClasses {
public:
  explicit BodyClasses(ScanOp op) : scan(op) {
    Block &body = op.getBody().front();
    for (Value argument : body.getArguments())
      addValue(argument);
    for (Operation &inner : body) {
      for (Value result : inner.getResults())
        addValue(result);
      if (!isa<ReturnOp>(inner))
        join(&inner);
    }
    joinTrips();
    blockTwice();
    followPartials();
  }

  /// A class that can be cut, or nothing.
  std::optional<int> classOf(Value value, int64_t dim) {
    int root = find(places.at({value.getAsOpaquePointer(), dim}));
    return blocked[root] ? std::nullopt : std::optional<int>(root);
  }
  int64_t sizeOf(int root) const { return sizes[root]; }

private:
  void addValue(Value value) {
    auto type = tensorOf(value);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      places[{value.getAsOpaquePointer(), dim}] = int(parents.size());
      parents.push_back(int(parents.size()));
      blocked.push_back(false);
      sizes.push_back(type.getDimSize(dim));
    }
  }

  int find(int node) {
    while (parents[node] != node)
      node = parents[node] = parents[parents[node]];
    return node;
  }

  void merge(int a, int b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    parents[b] = a;
    blocked[a] = blocked[a] || blocked[b];
    sizes[a] = std::gcd(sizes[a], sizes[b]);
  }

  int nodeOf(Value value, int64_t dim) { return places.at({value.getAsOpaquePointer(), dim}); }

  /// What the op's own rule says about its operands and results.
  void join(Operation *op) {
    auto ruled = dyn_cast<ShardingRuleOp>(op);
    ShardingRule rule = ruled ? ruled.getShardingRule() : emptyShardingRule(op);
    std::vector<int> first(rule.factorSizes.size(), -1);
    std::vector<bool> isCut(rule.factorSizes.size(), true), isInOperands(rule.factorSizes.size(), false);
    auto visit = [&](ValueRange values, auto &tensors, bool isOperand) {
      for (auto [value, dims] : llvm::zip_equal(values, tensors))
        for (auto [dim, factors] : llvm::enumerate(dims)) {
          int node = nodeOf(value, int64_t(dim));
          if (factors.empty()) {
            blocked[find(node)] = true;
            continue;
          }
          for (int32_t minor : ArrayRef<int32_t>(factors).drop_front())
            isCut[minor] = false;
          int32_t factor = factors.front();
          sizes[find(node)] = std::gcd(sizes[find(node)], rule.factorSizes[factor]);
          if (first[factor] >= 0)
            merge(first[factor], node);
          first[factor] = node;
          if (isOperand)
            isInOperands[factor] = true;
        }
    };
    visit(op->getOperands(), rule.operands, /*isOperand=*/true);
    visit(op->getResults(), rule.results, /*isOperand=*/false);
    for (size_t factor = 0; factor < first.size(); ++factor) {
      if (first[factor] < 0)
        continue;
      if (!isCut[factor])
        blocked[find(first[factor])] = true;
      if (!isInOperands[factor])
        continue;
      for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results))
        if (llvm::none_of(dims, [&](auto &factors) { return !factors.empty() && factors[0] == int32_t(factor); }))
          partials.push_back({result, first[factor]});
    }
  }

  /// What a trip returns is what the next one gets.
  void joinTrips() {
    auto returned = scan.getBody().front().back().getOperands();
    for (unsigned i = 0; i < scan.getNumCarried(); ++i)
      for (int64_t dim = 0; dim < tensorOf(returned[i]).getRank(); ++dim)
        merge(nodeOf(scan.getBody().getArgument(i), dim), nodeOf(returned[i], dim));
  }

  /// A value is cut along one dimension at most.
  void blockTwice() {
    std::map<std::pair<const void *, int>, int> seen;
    for (auto &[place, node] : places)
      if (++seen[{place.first, find(node)}] > 1)
        blocked[find(node)] = true;
  }

  /// Partial sums may reach a sum of the scan by way of linear ops, and nothing else.
  void followPartials() {
    unsigned firstSum = unsigned(scan.getNumCarried()) + scan.getNumYielded();
    for (size_t i = 0; i < partials.size(); ++i) {
      auto [value, node] = partials[i];
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (isa<ReturnOp>(user)) {
          if (use.getOperandNumber() < firstSum)
            blocked[find(node)] = true;
          continue;
        }
        auto isPartial = [&, node = node](Value operand) {
          return llvm::any_of(partials,
                              [&](auto &other) { return other.first == operand && find(other.second) == find(node); });
        };
        bool isLinear = isa<ReshapeOp, TransposeOp, ScaleOp, ReduceSumOp>(user) ||
                        (isa<AddOp>(user) && llvm::all_of(user->getOperands(), isPartial));
        if (!isLinear)
          blocked[find(node)] = true;
        else if (!isPartial(user->getResult(0)))
          partials.push_back({user->getResult(0), node});
      }
    }
  }

  ScanOp scan;
  std::map<std::pair<const void *, int64_t>, int> places; ///< of (value, dimension)
  std::vector<int> parents;
  std::vector<bool> blocked;  ///< of roots
  std::vector<int64_t> sizes; ///< of roots: what the number of shards must divide
  SmallVector<std::pair<Value, int>> partials;
};

} // namespace

ShardingRule scanShardingRule(ScanOp op) {
  ShardingRule rule = emptyShardingRule(op);
  BodyClasses classes(op);
  std::map<int, int32_t> factors;
  unsigned carried = unsigned(op.getNumCarried()), scanned = unsigned(op.getNumScanned()),
           firstSum = carried + op.getNumYielded();
  auto add = [&](Value inner, auto &dims, int64_t offset) {
    for (int64_t dim = 0; dim < tensorOf(inner).getRank(); ++dim)
      if (std::optional<int> root = classes.classOf(inner, dim)) {
        auto [factor, isNew] = factors.try_emplace(*root, 0);
        if (isNew)
          factor->second = rule.addFactor(classes.sizeOf(*root));
        dims[dim + offset].push_back(factor->second);
      }
  };
  for (auto [index, argument] : llvm::enumerate(op.getBody().getArguments()))
    add(argument, rule.operands[index], index >= carried && index < carried + scanned);
  for (auto [index, value] : llvm::enumerate(op.getBody().front().back().getOperands()))
    add(value, rule.results[index], index >= carried && index < firstSum);
  return rule;
}

void localizeScanBody(ScanOp op) {
  BodyClasses classes(op);
  unsigned carried = unsigned(op.getNumCarried()), scanned = unsigned(op.getNumScanned());
  std::map<int, int64_t> shards;
  for (auto [index, argument] : llvm::enumerate(op.getBody().getArguments())) {
    int64_t offset = index >= carried && index < carried + scanned;
    ArrayRef<int64_t> whole = tensorOf(argument).getShape(), local = tensorOf(op.getOperand(index)).getShape();
    for (size_t dim = 0; dim < whole.size(); ++dim)
      if (local[dim + offset] != whole[dim])
        if (std::optional<int> root = classes.classOf(argument, int64_t(dim)))
          shards[*root] = whole[dim] / local[dim + offset];
  }
  auto localType = [&](Value value) {
    auto type = tensorOf(value);
    SmallVector<int64_t> shape(type.getShape());
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (std::optional<int> root = classes.classOf(value, int64_t(dim)))
        if (auto found = shards.find(*root); found != shards.end())
          shape[dim] /= found->second;
    return RankedTensorType::get(shape, type.getElementType());
  };
  SmallVector<std::pair<Value, Type>> types;
  for (Value argument : op.getBody().getArguments())
    types.push_back({argument, localType(argument)});
  for (Operation &inner : op.getBody().front())
    for (Value result : inner.getResults())
      types.push_back({result, localType(result)});
  for (auto [value, type] : types)
    value.setType(type);
  for (Operation &inner : op.getBody().front())
    if (auto ruled = dyn_cast<ShardingRuleOp>(inner)) {
      SmallVector<Type> results(inner.getResultTypes());
      ruled.localize(results);
    }
}

} // namespace dg::ir
