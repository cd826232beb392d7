// SPDX-License-Identifier: Apache-2.0
#include "ir/reference/OpEvaluation.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/structure/GraphOps.h"

using namespace mlir;

namespace dg::ir {

HostTensor zerosOf(RankedTensorType type) {
  HostTensor tensor{type.getShape().vec(), {}};
  tensor.data.resize(tensor.numElements());
  return tensor;
}

void roundTo(Precision precision, RankedTensorType type, HostTensor &tensor) {
  if (isa<IntegerType>(type.getElementType()))
    return wrapIntegers(type, tensor);
  if (precision == Precision::f32)
    for (double &element : tensor.data)
      element = storedElement(element, type.getElementType());
}

/// The operands of a product that rounds one of them to the type of the other; empty for every other op.
static SmallVector<HostTensor> roundedFactors(Operation *op, ArrayRef<HostTensor> operands, Precision precision) {
  auto product = dyn_cast<MatmulOp>(op);
  if (!product || tensorOf(product.getLhs()).getElementType() == tensorOf(product.getRhs()).getElementType())
    return {};
  SmallVector<HostTensor> factors(operands);
  for (auto [factor, operand] : llvm::zip_equal(factors, op->getOperands()))
    roundTo(precision, tensorOf(operand).clone(product.getFactorType()), factor);
  return factors;
}

FailureOr<SmallVector<HostTensor>> evaluateOp(Operation *op, ArrayRef<HostTensor> operands, const RunScalars &scalars,
                                              Precision precision) {
  auto reference = dyn_cast<ReferenceOp>(op);
  if (!reference)
    return op->emitOpError("has no reference evaluation");
  SmallVector<HostTensor> results;
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return op->emitOpError() << "has a result of type " << type
                               << ", expected a static shape: run --dg-deduce-types first";
    results.push_back(zerosOf(tensor));
  }
  SmallVector<HostTensor> factors = roundedFactors(op, operands, precision);
  if (failed(reference.evaluate(factors.empty() ? operands : ArrayRef(factors), results, scalars)))
    return failure();
  for (auto [type, result] : llvm::zip_equal(op->getResultTypes(), results))
    roundTo(precision, cast<RankedTensorType>(type), result);
  return results;
}

SmallVector<std::string> resultNames(GraphOp graph) {
  SmallVector<std::string> names;
  ReturnOp end = graph.getReturn();
  for (auto [index, value] : llvm::enumerate(end.getOperands())) {
    Operation *maker = value.getDefiningOp();
    if (ArrayAttr given = end.getNamesAttr(); given && index < given.size())
      names.push_back(cast<StringAttr>(given[index]).str());
    else if (index == 0 && graph.getSymName() == "loss")
      names.push_back("loss");
    else if (!maker)
      names.push_back(graph.getInputName(cast<BlockArgument>(value).getArgNumber()).str());
    else if (StringRef label = getPlace(maker).getLabel().getValue(); !label.empty())
      names.push_back(label.str());
    else
      names.push_back(maker->getName().stripDialect().str());
  }
  return names;
}

} // namespace dg::ir
