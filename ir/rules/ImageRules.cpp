// SPDX-License-Identifier: Apache-2.0
#include "ir/rules/ImageRules.h"

using namespace mlir;

namespace dg::ir {

ShardingRule imageRule(Operation *op, ArrayRef<StringRef> operands, StringRef result, StringRef letters) {
  ShardingRule rule = emptyShardingRule(op);
  for (char letter : letters) {
    std::optional<int32_t> factor;
    auto place = [&](StringRef layout, RankedTensorType type, auto &dims) {
      size_t dim = layout.find(letter);
      if (dim == StringRef::npos)
        return;
      if (!factor)
        factor = rule.addFactor(type.getDimSize(dim));
      dims[dim].push_back(*factor);
    };
    for (auto [index, layout] : llvm::enumerate(operands))
      place(layout, tensorOf(op->getOperand(index)), rule.operands[index]);
    place(result, tensorOf(op->getResult(0)), rule.results[0]);
  }
  return rule;
}

OpCost tapCost(Operation *op, RankedTensorType output, RankedTensorType weight) {
  double taps = double(output.getNumElements()) * weight.getNumElements() / weight.getDimSize(0);
  return {2 * taps, operandAndResultBytes(op)};
}

} // namespace dg::ir
