// SPDX-License-Identifier: Apache-2.0
// Tensors whose elements are part of the model: the parts of the op contract they have.
#include "ir/ops/structure/LiteralOps.h"
#include "ir/dialect/Elements.h"

using namespace mlir;

namespace dg::ir {

LogicalResult LiteralOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange, DictionaryAttr,
                                          OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &inferred) {
  inferred.push_back(properties.as<Properties *>()->value.getShapedType());
  return success();
}

LogicalResult LiteralOp::verify() {
  if (!isa<DenseIntOrFPElementsAttr>(getValue()) || !isa<RankedTensorType>(getValue().getShapedType()))
    return emitOpError() << "has elements of type " << getValue().getShapedType()
                         << ", expected a tensor of numbers, as dense<[1.0, 2.0]> : tensor<2xf32>";
  return success();
}

Gradients LiteralOp::buildGradients(OpBuilder &, ValueRange) { return SmallVector<Value>(); }

/// Whole on every rank: its elements are in the package once, and a rank that needs a block slices it.
ShardingRule LiteralOp::getShardingRule() { return emptyShardingRule(*this); }

OpCost LiteralOp::getCost() { return {}; }

void LiteralOp::compute(HostOperands, HostResults results) {
  results[0] = hostTensorOf(cast<DenseElementsAttr>(getValue()));
}

} // namespace dg::ir

#define DG_OPS "ir/ops/structure/LiteralOps.cpp.inc"
#define DG_ADD_OPS addLiteralOps
#include "ir/ops/Family.inc"
