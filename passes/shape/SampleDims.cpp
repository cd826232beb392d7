// SPDX-License-Identifier: Apache-2.0
#include "passes/shape/SampleDims.h"

#include "ir/dialect/OpContract.h"
#include "ir/ops/structure/LiteralOps.h"

using namespace mlir;

namespace dg::passes {

using namespace ir;

SampleDims::SampleDims(GraphOp graph) {
  for (BlockArgument argument : graph.getBody().getArguments())
    dims[argument] = tensorOf(argument).getRank() > 0 ? 0 : nowhere;
  for (Operation &op : graph.getBody().front())
    if (isa<ParameterOp, ConstantOp, LiteralOp, LossOp>(op))
      dims[op.getResult(0)] = nowhere;
}

std::optional<int64_t> SampleDims::of(Value value) const {
  auto found = dims.find(value);
  return found == dims.end() ? std::nullopt : std::optional(found->second);
}

SampleDims::Step SampleDims::follow(Operation *op, const ShardingRule &rule) {
  Step step;
  bool isKnown = op->getNumOperands() > 0;
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    std::optional<int64_t> dim = of(operand);
    isKnown &= dim.has_value();
    if (!has(operand))
      continue;
    if (factors[size_t(*dim)].empty()) {
      step.isLost = true;
      continue;
    }
    step.hasTwo |= step.factor && *step.factor != factors[size_t(*dim)].front();
    if (!step.factor)
      step.factor = factors[size_t(*dim)].front();
  }
  for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results)) {
    for (auto [dim, each] : llvm::enumerate(factors)) {
      step.isKept |= step.factor && llvm::is_contained(each, *step.factor);
      if (step.factor && !each.empty() && each.front() == *step.factor)
        dims[result] = int64_t(dim);
    }
    if (isKnown && !step.isLost)
      dims.try_emplace(result, nowhere);
  }
  return step;
}

} // namespace dg::passes
