// SPDX-License-Identifier: Apache-2.0
// Proves the facts that ops state of themselves by measuring them with the reference evaluation: which integers an
// operand may hold, and whether an element depends on all of a dimension that the sharding rule does not follow. An op
// that forgets to state one fails here.
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

std::optional<SmallVector<HostTensor>> evaluate(Operation *op, ArrayRef<HostTensor> operands) {
  ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
  auto results = evaluateOp(op, operands, RunScalars{0.1, 3}, Precision::f64);
  return failed(results) ? std::nullopt : std::optional(*results);
}

/// Whether the reference takes `index` at some place of the operand, the others being as drawn.
bool takesIndex(OpInstance &instance, size_t operand, double index) {
  for (size_t place = 0; place < instance.operands[operand].data.size(); ++place) {
    std::vector<HostTensor> operands = instance.operands;
    operands[operand].data[place] = index;
    if (evaluate(instance.op(), operands))
      return true;
  }
  return false;
}

/// Elements of the results that change when slice `index` of a dimension of an operand does.
std::set<std::pair<size_t, size_t>> changedBy(OpInstance &instance, ArrayRef<HostTensor> whole, size_t operand,
                                              size_t dim, int64_t index) {
  std::set<std::pair<size_t, size_t>> changed;
  const HostTensor &tensor = instance.operands[operand];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < tensor.shape.size(); ++d)
    inner *= tensor.shape[d];
  // Upwards and downwards, and far: an extremum does not feel a small step away from it.
  for (double step : {3.0, -3.0}) {
    std::vector<HostTensor> operands = instance.operands;
    for (size_t at = 0; at < tensor.data.size(); ++at)
      if (int64_t(at) / inner % tensor.shape[dim] == index)
        operands[operand].data[at] += step;
    auto results = evaluate(instance.op(), operands);
    if (!results)
      continue;
    for (size_t result = 0; result < whole.size(); ++result)
      for (size_t at = 0; at < whole[result].data.size(); ++at)
        if ((*results)[result].data[at] != whole[result].data[at])
          changed.insert({result, at});
  }
  return changed;
}

/// Whether the op is taken apart before anyone asks for its rule.
bool hasParts(OpInstance &instance) {
  OwningOpRef<ModuleOp> copy = instance.module->clone();
  Operation *op = &(*copy->getOps<GraphOp>().begin()).getBody().front().front();
  auto composite = dyn_cast<CompositeOp>(op);
  OpBuilder builder(op);
  return composite && !composite.decompose(builder).empty();
}

/// Whether an element of a result depends on all of a dimension that the rule does not follow.
bool isMixing(OpInstance &instance, ArrayRef<HostTensor> whole) {
  ShardingRule rule = cast<ShardingRuleOp>(instance.op()).getShardingRule();
  auto precision = dyn_cast<PrecisionOp>(instance.op());
  const bool isProduct = precision && precision.getPrecisionClass() == PrecisionClass::product;
  for (auto [operand, dims] : llvm::enumerate(rule.operands)) {
    // The second factor of a product that has a rule of its own is a weight, which has no samples.
    if (isProduct && operand == 1)
      continue;
    if (!isa<FloatType>(tensorOf(instance.op()->getOperand(operand)).getElementType()))
      continue;
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      int64_t size = instance.operands[operand].shape[dim];
      // Windows reach over a few places; what they all cover proves nothing.
      if (!factors.empty() || size < 6)
        continue;
      auto common = changedBy(instance, whole, operand, dim, 0);
      for (int64_t index = 1; index < size && !common.empty(); ++index) {
        auto changed = changedBy(instance, whole, operand, dim, index);
        std::erase_if(common, [&](const auto &element) { return !changed.contains(element); });
      }
      if (!common.empty())
        return true;
    }
  }
  return false;
}

} // namespace

TEST(OpFacts, IndexBoundIsWhereTheReferenceStops) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  int numBounds = 0;
  for (const OpSpec &spec : opTable())
    for (size_t operand = 0; operand < spec.operands.size(); ++operand) {
      if (spec.operands[operand].elements != Elements::index)
        continue;
      OpInstance instance = instantiate(spec, {2, 4, 6}, random, *context);
      SCOPED_TRACE(instance.text + "operand " + std::to_string(operand));
      auto indexing = dyn_cast<IndexOp>(instance.op());
      IndexBound bound = indexing ? indexing.getIndexBound(unsigned(operand)) : IndexBound();
      if (bound.places == 0) {
        EXPECT_TRUE(takesIndex(instance, operand, 40)) << "refuses 40, expected an index bound that says so";
        continue;
      }
      ++numBounds;
      EXPECT_TRUE(takesIndex(instance, operand, double(bound.places - 1)));
      EXPECT_FALSE(takesIndex(instance, operand, double(bound.places)));
      EXPECT_EQ(takesIndex(instance, operand, -1), bound.countsFromEnd);
    }
  EXPECT_GT(numBounds, 15);
}

TEST(OpFacts, MixingIsWhatTheReferenceDoes) {
  constexpr int numRounds = 8;
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  std::set<std::string> stated, measured, certain;
  for (const OpSpec &spec : opTable()) {
    int numMixing = 0;
    std::string name = spec.text.substr(0, spec.text.find(' '));
    for (int round = 0; round < numRounds; ++round) {
      OpInstance instance = instantiate(spec, {6}, random, *context);
      if (!isa<ShardingRuleOp>(instance.op()) || instance.op()->getNumRegions() > 0 || hasParts(instance))
        break;
      if (mixesWholeDims(instance.op()))
        stated.insert(name);
      auto whole = evaluate(instance.op(), instance.operands);
      ASSERT_TRUE(whole) << instance.text;
      if (isMixing(instance, *whole))
        ++numMixing;
      else if (!mixesWholeDims(instance.op()))
        break;
    }
    if (numMixing > 0)
      measured.insert(name);
    // Places that happen to be equal may let one element depend on all; not in every round.
    if (numMixing == numRounds)
      certain.insert(name);
  }
  for (const std::string &name : stated)
    EXPECT_TRUE(measured.contains(name)) << name << " has the trait MixesWholeDims, but does not";
  for (const std::string &name : certain)
    EXPECT_TRUE(stated.contains(name)) << name << " mixes whole dimensions, expected the trait MixesWholeDims";
}
