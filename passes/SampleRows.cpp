// SPDX-License-Identifier: Apache-2.0
#include "passes/SampleRows.h"

#include "ir/OpContract.h"

using namespace mlir;

namespace dg::passes {

namespace {

using namespace ir;

constexpr int64_t nowhere = -1;

/// Where the samples are: a dimension, nowhere, or not known (not in the map).
class SampleDims {
public:
  explicit SampleDims(GraphOp graph) {
    for (BlockArgument argument : graph.getBody().getArguments())
      dims[argument] = tensorOf(argument).getRank() > 0 ? 0 : nowhere;
    for (Operation &op : graph.getBody().front())
      visit(&op);
  }

  std::optional<int64_t> of(Value value) const {
    auto found = dims.find(value);
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  }

private:
  void visit(Operation *op) {
    if (isa<ParameterOp>(op))
      dims[op->getResult(0)] = nowhere;
    auto ruled = dyn_cast<ShardingRuleOp>(op);
    if (!ruled || op->getNumOperands() == 0)
      return;
    ShardingRule rule = ruled.getShardingRule();
    std::optional<int32_t> factor;
    bool isKnown = true;
    for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands)) {
      std::optional<int64_t> dim = of(operand);
      if (dim && *dim != nowhere && !factor && !factors[size_t(*dim)].empty())
        factor = factors[size_t(*dim)].front();
      else if (!dim || (*dim != nowhere && factors[size_t(*dim)].empty()))
        isKnown = false;
    }
    for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results)) {
      for (auto [dim, each] : llvm::enumerate(factors))
        if (factor && !each.empty() && each.front() == *factor)
          dims[result] = int64_t(dim);
      if (isKnown)
        dims.try_emplace(result, nowhere);
    }
  }

  llvm::DenseMap<Value, int64_t> dims;
};

} // namespace

SmallVector<bool> findSampleRows(GraphOp graph) {
  int64_t rows = 0;
  for (BlockArgument argument : graph.getBody().getArguments())
    if (auto type = tensorOf(argument); rows == 0 && type.getRank() > 0)
      rows = type.getDimSize(0);
  SampleDims dims(graph);
  SmallVector<bool> found;
  for (Value value : graph.getReturn().getOperands()) {
    auto type = tensorOf(value);
    // With one row the whole micro-batch is one sample.
    found.push_back(type.getRank() > 0 && type.getDimSize(0) == rows && (rows == 1 || dims.of(value).value_or(0) == 0));
  }
  return found;
}

} // namespace dg::passes
