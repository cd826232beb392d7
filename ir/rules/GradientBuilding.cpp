// SPDX-License-Identifier: Apache-2.0
// Small graphs that gradients, decompositions and losses build again and again.
#include "ir/rules/GradientBuilding.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"

using namespace mlir;

namespace dg::ir {

Value buildReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = tensorOf(value);
  if (type.getShape() == shape)
    return value;
  // A 0 in the shape of a dg.reshape keeps the size at its place. Nothing is lost of a tensor without elements.
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size == 0 && (int64_t(dim) >= type.getRank() || type.getDimSize(unsigned(dim)) != 0))
      return buildFilled(builder, loc, type.clone(shape), 0);
  return create<ReshapeOp>(builder, loc, value, shape);
}

Value buildScale(OpBuilder &builder, Location loc, Value value, double factor) {
  return create<ScaleOp>(builder, loc, value, APFloat(factor));
}

Value buildFilled(OpBuilder &builder, Location loc, RankedTensorType type, double number) {
  return create<ConstantOp>(builder, loc, type, builder.getF64FloatAttr(number), TypeAttr::get(type));
}

Value buildZeros(OpBuilder &builder, Location loc, Value like) { return buildFilled(builder, loc, tensorOf(like), 0); }

Value sumToShape(OpBuilder &builder, Location loc, Value value, RankedTensorType target) {
  auto type = tensorOf(value);
  if (type.getShape() == target.getShape())
    return value;
  int64_t numLeading = type.getRank() - target.getRank();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, numLeading));
  for (int64_t dim = numLeading; dim < type.getRank(); ++dim)
    if (target.getDimSize(dim - numLeading) == 1 && type.getDimSize(dim) != 1)
      dims.push_back(dim);
  // Leading dimensions alone vanish without a reshape.
  bool keep = int64_t(dims.size()) > numLeading;
  Value sum = create<ReduceSumOp>(builder, loc, value, dims, keep);
  return buildReshape(builder, loc, sum, target.getShape());
}

} // namespace dg::ir
