// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/structure/ControlSharding.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/ShardingRules.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace dg::ir {

namespace {

/// Dimensions of the bodies' values in classes that are cut together.
class BodyClasses {
public:
  explicit BodyClasses(const BodyLayout &layout) : layout(layout) {
    for (Region *body : layout.bodies) {
      for (Value argument : body->getArguments())
        addValue(argument);
      for (Operation &inner : body->front()) {
        for (Value result : inner.getResults())
          addValue(result);
        if (!isa<ReturnOp>(inner))
          join(&inner);
      }
    }
    joinBodies();
    joinTrips();
    blockTwice();
    followPartials();
    blockReplicated();
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

  void mergeAll(Value a, Value b) {
    for (int64_t dim = 0; dim < tensorOf(a).getRank(); ++dim)
      merge(nodeOf(a, dim), nodeOf(b, dim));
  }

  static ValueRange returnedBy(Region *body) { return body->front().back().getOperands(); }

  /// Every body gets the same and gives the same.
  void joinBodies() {
    for (Region *body : llvm::drop_begin(layout.bodies)) {
      for (auto [a, b] : llvm::zip_equal(layout.bodies[0]->getArguments(), body->getArguments()))
        mergeAll(a, b);
      for (auto [a, b] : llvm::zip_equal(returnedBy(layout.bodies[0]), returnedBy(body)))
        mergeAll(a, b);
    }
  }

  /// What a trip returns is what the next one gets.
  void joinTrips() {
    for (unsigned i = 0; i < layout.numCarried; ++i)
      mergeAll(layout.bodies[0]->getArgument(i), returnedBy(layout.bodies[0])[layout.firstReturned + i]);
  }

  /// A value is cut along one dimension at most.
  void blockTwice() {
    std::map<std::pair<const void *, int>, int> seen;
    for (auto &[place, node] : places)
      if (++seen[{place.first, find(node)}] > 1)
        blocked[find(node)] = true;
  }

  /// Partial sums may reach a sum of the op by way of linear ops, and nothing else.
  void followPartials() {
    for (size_t i = 0; i < partials.size(); ++i) {
      auto [value, node] = partials[i];
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (isa<ReturnOp>(user)) {
          if (use.getOperandNumber() + layout.numSums < user->getNumOperands())
            blocked[find(node)] = true;
          continue;
        }
        auto isPartial = [&, node = node](Value operand) {
          return llvm::any_of(partials,
                              [&](auto &other) { return other.first == operand && find(other.second) == find(node); });
        };
        if (!isLinear(user) || !llvm::all_of(user->getOperands(), isPartial))
          blocked[find(node)] = true;
        else if (!isPartial(user->getResult(0)))
          partials.push_back({user->getResult(0), node});
      }
    }
  }

  /// A result that neither has a factor nor is a partial sum along it would count once for each shard.
  void blockReplicated() {
    ValueRange returned = returnedBy(layout.bodies[0]).drop_front(layout.firstReturned);
    for (auto &[place, node] : places) {
      int root = find(node);
      for (auto [index, value] : llvm::enumerate(returned)) {
        bool isCut = false, isSummed = index >= layout.numCarried + layout.numStacked;
        for (int64_t dim = 0; dim < tensorOf(value).getRank(); ++dim)
          isCut = isCut || find(nodeOf(value, dim)) == root;
        if (isSummed && layout.numSums > 0)
          isCut = isCut || llvm::any_of(partials, [&](auto &partial) {
                    return partial.first == value && find(partial.second) == root;
                  });
        if (!isCut)
          blocked[root] = true;
      }
    }
  }

  const BodyLayout &layout;
  std::map<std::pair<const void *, int64_t>, int> places; ///< of (value, dimension)
  std::vector<int> parents;
  std::vector<bool> blocked;  ///< of roots
  std::vector<int64_t> sizes; ///< of roots: what the number of shards must divide
  SmallVector<std::pair<Value, int>> partials;
};

} // namespace

ShardingRule bodyShardingRule(Operation *op, const BodyLayout &layout) {
  ShardingRule rule = emptyShardingRule(op);
  BodyClasses classes(layout);
  std::map<int, int32_t> factors;
  auto add = [&](Value inner, auto &dims, int64_t offset) {
    for (int64_t dim = 0; dim < tensorOf(inner).getRank(); ++dim)
      if (std::optional<int> root = classes.classOf(inner, dim)) {
        auto [factor, isNew] = factors.try_emplace(*root, 0);
        if (isNew)
          factor->second = rule.addFactor(classes.sizeOf(*root));
        dims[dim + offset].push_back(factor->second);
      }
  };
  Region &body = *layout.bodies[0];
  for (auto [index, argument] : llvm::enumerate(body.getArguments()))
    add(argument, rule.operands[layout.firstOperand + index], layout.argumentOffset(index));
  for (auto [index, value] : llvm::enumerate(body.front().back().getOperands().drop_front(layout.firstReturned)))
    add(value, rule.results[index], layout.resultOffset(index));
  return rule;
}

void localizeBodies(Operation *op, const BodyLayout &layout) {
  BodyClasses classes(layout);
  std::map<int, int64_t> shards;
  for (auto [index, argument] : llvm::enumerate(layout.bodies[0]->getArguments())) {
    int64_t offset = layout.argumentOffset(index);
    ArrayRef<int64_t> whole = tensorOf(argument).getShape(),
                      local = tensorOf(op->getOperand(unsigned(layout.firstOperand + index))).getShape();
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
  for (Region *body : layout.bodies) {
    for (Value argument : body->getArguments())
      types.push_back({argument, localType(argument)});
    for (Operation &inner : body->front())
      for (Value result : inner.getResults())
        types.push_back({result, localType(result)});
  }
  for (auto [value, type] : types)
    value.setType(type);
  for (Region *body : layout.bodies)
    for (Operation &inner : body->front())
      if (auto ruled = dyn_cast<ShardingRuleOp>(inner)) {
        SmallVector<Type> results(inner.getResultTypes());
        ruled.localize(results);
      }
}

} // namespace dg::ir
