// SPDX-License-Identifier: Apache-2.0
// Proves each sharding rule: the operands are cut along each factor, each shard is evaluated by itself, and the shards'
// results, put side by side or added up as the rule says, are the results of the whole.
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/reference/TensorBlocks.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

constexpr int64_t numShards = 2;
using Dims = SmallVector<SmallVector<int32_t, 2>>;

/// The dimension that a cut of the factor cuts, if any.
std::optional<int64_t> cutDim(const Dims &dims, int32_t factor) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    if (!factors.empty() && factors.front() == factor)
      return dim;
  return std::nullopt;
}

/// A factor can be cut where it is the first one of every dimension that has it.
bool canCut(const ShardingRule &rule, int32_t factor) {
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const Dims &dims : *tensors)
      for (const auto &factors : dims)
        if (llvm::is_contained(ArrayRef<int32_t>(factors).drop_front(factors.empty() ? 0 : 1), factor))
          return false;
  return rule.factorSizes[factor] % numShards == 0;
}

RankedTensorType cutType(RankedTensorType type, const Dims &dims, int32_t factor) {
  SmallVector<int64_t> shape(type.getShape());
  if (auto dim = cutDim(dims, factor))
    shape[*dim] /= numShards;
  return RankedTensorType::get(shape, type.getElementType());
}

/// The op with local types, as the split phase makes it.
OwningOpRef<ModuleOp> localModule(OpInstance &instance, const ShardingRule &rule, int32_t factor) {
  OwningOpRef<ModuleOp> module = instance.module->clone();
  GraphOp graph = *module->getOps<GraphOp>().begin();
  Operation *op = &graph.getBody().front().front();
  for (auto [argument, dims] : llvm::zip_equal(graph.getBody().getArguments(), rule.operands))
    argument.setType(cutType(tensorOf(argument), dims, factor));
  SmallVector<Type> types;
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
    types.push_back(cutType(tensorOf(result), dims, factor));
    result.setType(types.back());
  }
  cast<ShardingRuleOp>(op).localize(types);

  SmallVector<Type> inferred;
  EXPECT_TRUE(succeeded(cast<InferTypeOpInterface>(op).inferReturnTypes(
      op->getContext(), op->getLoc(), op->getOperands(), op->getAttrDictionary(), op->getPropertiesStorage(),
      op->getRegions(), inferred)));
  EXPECT_EQ(inferred, types) << "the op must infer from local operands what the rule says";
  return module;
}

void checkFactor(OpInstance &instance, const ShardingRule &rule, int32_t factor, ArrayRef<HostTensor> whole) {
  SCOPED_TRACE(instance.text + "cut along factor " + std::to_string(factor));
  OwningOpRef<ModuleOp> module = localModule(instance, rule, factor);
  Operation *op = &(*module->getOps<GraphOp>().begin()).getBody().front().front();
  SmallVector<HostTensor> joined;
  for (const HostTensor &tensor : whole)
    joined.push_back({tensor.shape, std::vector<double>(tensor.data.size(), 0.0)});
  for (int64_t shard = 0; shard < numShards; ++shard) {
    SmallVector<HostTensor> operands(instance.operands.begin(), instance.operands.end());
    for (auto [operand, dims] : llvm::zip_equal(operands, rule.operands))
      if (auto dim = cutDim(dims, factor))
        operand = cutBlock(operand, *dim, shard * operand.shape[*dim] / numShards, operand.shape[*dim] / numShards);
    auto results = evaluateOp(op, operands, RunScalars{0.1, 3}, Precision::f64);
    ASSERT_TRUE(succeeded(results));
    for (auto [into, result, dims] : llvm::zip_equal(joined, *results, rule.results)) {
      if (auto dim = cutDim(dims, factor)) {
        pasteBlock(into, result, *dim, shard * result.shape[*dim]);
        continue;
      }
      for (auto [sum, element] : llvm::zip_equal(into.data, result.data))
        sum += element;
    }
  }
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(joined, whole)))
    EXPECT_LT(difference(std::get<0>(pair), std::get<1>(pair)), 1e-13) << "result " << index;
}

} // namespace

TEST(ShardingRule, ShardsMakeTheWhole) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  std::map<std::string, int> numCuts;
  for (int round = 0; round < 4; ++round)
    for (const OpSpec &spec : opTable()) {
      OpInstance instance = instantiate(spec, {2, 4, 6}, random, *context);
      auto op = dyn_cast<ShardingRuleOp>(instance.op());
      if (!op)
        continue;
      ShardingRule rule = op.getShardingRule();
      ASSERT_EQ(rule.operands.size(), op->getNumOperands());
      ASSERT_EQ(rule.results.size(), op->getNumResults());
      auto whole = evaluateOp(op, instance.operands, RunScalars{0.1, 3}, Precision::f64);
      ASSERT_TRUE(succeeded(whole));
      for (int32_t factor = 0; factor < int32_t(rule.factorSizes.size()); ++factor)
        if (canCut(rule, factor)) {
          checkFactor(instance, rule, factor, *whole);
          ++numCuts[op->getName().getStringRef().str()];
        }
    }
  for (const OpSpec &spec : opTable()) {
    std::string name = spec.text.substr(0, spec.text.find(' '));
    // A literal's elements are in the package once; a key is one number.
    bool isWholeEverywhere = name == "dg.literal" || name == "dg.random_key";
    if (OperationName(name, context.get()).hasInterface<ShardingRuleOp>() && !isWholeEverywhere)
      EXPECT_GE(numCuts[name], 1) << name << " was never cut";
  }
}

TEST(ShardingRule, EveryDimensionIsTheProductOfItsFactorsOrWhole) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : opTable()) {
    OpInstance instance = instantiate(spec, {2, 4, 6}, random, *context);
    auto op = dyn_cast<ShardingRuleOp>(instance.op());
    if (!op)
      continue;
    ShardingRule rule = op.getShardingRule();
    auto check = [&](TypeRange types, ArrayRef<Dims> tensors) {
      for (auto [type, dims] : llvm::zip_equal(types, tensors))
        for (auto [size, factors] : llvm::zip_equal(cast<RankedTensorType>(type).getShape(), dims)) {
          int64_t product = 1;
          for (int32_t factor : factors)
            product *= rule.factorSizes[factor];
          EXPECT_EQ(size % product, 0) << instance.text;
        }
    };
    check(op->getOperandTypes(), rule.operands);
    check(op->getResultTypes(), rule.results);
  }
}

/// The factors of a reshape, by shapes: what the partition of attention and of a flattened image rests on.
TEST(ShardingRule, ReshapeFindsCommonFactors) {
  auto context = makeContext();
  auto ruleOf = [&](const std::string &from, const std::string &to) {
    auto module = parse(*context, "dg.graph @g(%a: tensor<" + from +
                                      "xf32>) { %r = dg.reshape %a {shape = array<i64: " + to + ">}\n dg.return %r }");
    GraphOp graph = *module->getOps<GraphOp>().begin();
    EXPECT_TRUE(succeeded(deduce(graph)));
    return cast<ShardingRuleOp>(graph.getBody().front().front()).getShardingRule();
  };
  ShardingRule heads = ruleOf("4x8x12", "4, 8, 3, 4");
  EXPECT_EQ(heads.operands[0], (Dims{{0}, {1}, {2, 3}}));
  EXPECT_EQ(heads.results[0], (Dims{{0}, {1}, {2}, {3}}));
  ShardingRule rows = ruleOf("4x8x12", "32, 12");
  EXPECT_EQ(rows.operands[0], (Dims{{0}, {1}, {2}}));
  EXPECT_EQ(rows.results[0], (Dims{{0, 1}, {2}}));
  ShardingRule image = ruleOf("64x20x4x4", "64, 320");
  EXPECT_EQ(image.operands[0], (Dims{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(image.results[0], (Dims{{0}, {1, 2, 3}}));
  ShardingRule coprime = ruleOf("2x2x3x5", "2, 3, 2, 5");
  EXPECT_EQ(coprime.operands[0], (Dims{{0}, {}, {}, {1}}));
  EXPECT_EQ(coprime.results[0], (Dims{{0}, {}, {}, {1}}));
  ShardingRule nothing = ruleOf("0x3", "0, 3, 1");
  EXPECT_TRUE(nothing.factorSizes.empty());
}
