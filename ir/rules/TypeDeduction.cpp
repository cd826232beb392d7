// SPDX-License-Identifier: Apache-2.0
#include "ir/rules/TypeDeduction.h"
#include "ir/dialect/Dialect.h"
#include "ir/dialect/TextGuard.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::ir {

LogicalResult checkTensorSize(Operation *op, Type type) {
  constexpr auto maxElements = int64_t(maxTensorElements);
  auto tensor = dyn_cast<RankedTensorType>(type);
  int64_t elements = 1;
  for (int64_t size : tensor ? tensor.getShape() : ArrayRef<int64_t>())
    if (llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements) || elements > maxElements)
      return op->emitOpError() << "has a tensor of type " << type << ", expected at most " << maxElements
                               << " elements: make the model or --batch smaller";
  return success();
}

LogicalResult deduceResults(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), isAny))
    return op->emitOpError("reads a value that is not made before it in its graph, expected one that is, or one that "
                           "the graph is given");
  auto inference = dyn_cast<InferTypeOpInterface>(op);
  if (!inference)
    return success();
  SmallVector<Type> types;
  if (failed(inference.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                        op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
                                        op->getRegions(), types)))
    return failure();
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    result.setType(type);
    if (failed(checkTensorSize(op, type)))
      return failure();
  }
  return success();
}

} // namespace dg::ir
