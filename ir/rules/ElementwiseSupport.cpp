// SPDX-License-Identifier: Apache-2.0
#include "ir/rules/ElementwiseSupport.h"
#include "ir/dialect/HostTensorAccess.h"

using namespace mlir;

namespace dg::ir {

bool isIn(Domain domain, Type element) {
  bool isInteger = isa<IntegerType>(element) && !isBool(element);
  switch (domain) {
  case Domain::number:
    return isa<FloatType>(element) || isInteger;
  case Domain::real:
    return isa<FloatType>(element);
  case Domain::integer:
    return isInteger;
  case Domain::boolean:
    return isBool(element);
  case Domain::any:
    return true;
  }
  return false;
}

llvm::StringRef describe(Domain domain) {
  switch (domain) {
  case Domain::number:
    return "floats or integers";
  case Domain::real:
    return "floats";
  case Domain::integer:
    return "integers";
  case Domain::boolean:
    return "bools (i1)";
  case Domain::any:
    return "of any type";
  }
  return "";
}

void evaluateElementwise(ElementwiseOp op, HostOperands operands, HostTensor &result) {
  SmallVector<SmallVector<int64_t>> strides;
  for (const HostTensor &operand : operands)
    strides.push_back(broadcastStrides(operand.shape, result.shape));
  SmallVector<double> scalars(operands.size());
  auto out = result.data.begin();
  forEachIndex(result.shape, strides, [&](ArrayRef<int64_t> offsets) {
    for (size_t i = 0; i < operands.size(); ++i)
      scalars[i] = operands[i].data[offsets[i]];
    *out++ = op.evaluateScalar(scalars);
  });
}

} // namespace dg::ir
