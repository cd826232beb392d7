// SPDX-License-Identifier: Apache-2.0
// Ops that compute each element by itself. One type rule, one sharding rule and one evaluation serve them all; an op
// adds its scalar function and its gradient.
#include "ir/ElementwiseOps.h"
#include "ir/GradientBuilding.h"
#include "ir/HostTensorAccess.h"
#include "ir/ShardingRules.h"
#include "ir/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- What all share --------------------------------------------------------------------------------------------===//

template <typename Op>
static LogicalResult inferElementwise(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                      SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, 1, inferred))
    return success();
  auto type = cast<RankedTensorType>(operands[0].getType());
  SmallVector<int64_t> shape(type.getShape());
  for (Value operand : operands.drop_front()) {
    if (tensorOf(operand).getElementType() != type.getElementType())
      return reject<Op>(location, "has operands ", type, " and ", operand.getType(), ", expected equal element types");
    auto joined = broadcastShapes(shape, tensorOf(operand).getShape());
    if (!joined)
      return reject<Op>(location, "has operands ", type, " and ", operand.getType(),
                        ", expected equal sizes, or 1, counted from the last dimension");
    shape = *joined;
  }
  inferred.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

static LogicalResult evaluateElementwise(ElementwiseOp op, ArrayRef<HostTensor> operands, HostTensor &result) {
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
  return success();
}

/// The parts of the contract that do not depend on the scalar function.
#define DG_ELEMENTWISE(Op)                                                                                             \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,          \
                                     SmallVectorImpl<Type> &inferred) {                                                \
    return inferElementwise<Op>(context, location, adaptor.getOperands(), inferred);                                   \
  }                                                                                                                    \
  ShardingRule Op::getShardingRule() { return broadcastRule(*this); }                                                  \
  LogicalResult Op::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) { \
    return evaluateElementwise(*this, operands, results[0]);                                                           \
  }
DG_ELEMENTWISE(AddOp)
DG_ELEMENTWISE(SubOp)
DG_ELEMENTWISE(MulOp)
DG_ELEMENTWISE(DivOp)
DG_ELEMENTWISE(ScaleOp)
DG_ELEMENTWISE(ReluOp)
DG_ELEMENTWISE(ReluGradOp)
DG_ELEMENTWISE(GeluOp)
DG_ELEMENTWISE(GeluGradOp)
#undef DG_ELEMENTWISE

//===- Scalar functions ------------------------------------------------------------------------------------------===//

double AddOp::evaluateScalar(ArrayRef<double> x) { return x[0] + x[1]; }
double SubOp::evaluateScalar(ArrayRef<double> x) { return x[0] - x[1]; }
double MulOp::evaluateScalar(ArrayRef<double> x) { return x[0] * x[1]; }
double DivOp::evaluateScalar(ArrayRef<double> x) { return x[0] / x[1]; }
double ScaleOp::evaluateScalar(ArrayRef<double> x) { return x[0] * getFactor().convertToDouble(); }
// Written so that a NaN stays one and is found where it arose.
double ReluOp::evaluateScalar(ArrayRef<double> x) { return x[0] < 0 ? 0 : x[0]; }
double ReluGradOp::evaluateScalar(ArrayRef<double> x) { return x[1] > 0 ? x[0] : 0; }

static constexpr double geluCubic = 0.044715;
static const double geluSlope = std::sqrt(2 / M_PI);

double GeluOp::evaluateScalar(ArrayRef<double> x) {
  return x[0] / 2 * (1 + std::tanh(geluSlope * (x[0] + geluCubic * x[0] * x[0] * x[0])));
}

double GeluGradOp::evaluateScalar(ArrayRef<double> x) {
  double grad = x[0], in = x[1];
  double t = std::tanh(geluSlope * (in + geluCubic * in * in * in));
  return grad * ((1 + t) / 2 + in / 2 * (1 - t * t) * geluSlope * (1 + 3 * geluCubic * in * in));
}

//===- Gradients -------------------------------------------------------------------------------------------------===//

using Gradients = FailureOr<SmallVector<Value>>;

Gradients AddOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{sumToShape(builder, getLoc(), grads[0], tensorOf(getLhs())),
                            sumToShape(builder, getLoc(), grads[0], tensorOf(getRhs()))};
}

Gradients SubOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value rhs = sumToShape(builder, getLoc(), grads[0], tensorOf(getRhs()));
  return SmallVector<Value>{sumToShape(builder, getLoc(), grads[0], tensorOf(getLhs())),
                            buildScale(builder, getLoc(), rhs, -1)};
}

Gradients MulOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value lhs = builder.create<MulOp>(getLoc(), grads[0], getRhs(), PlaceAttr());
  Value rhs = builder.create<MulOp>(getLoc(), grads[0], getLhs(), PlaceAttr());
  return SmallVector<Value>{sumToShape(builder, getLoc(), lhs, tensorOf(getLhs())),
                            sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()))};
}

/// d(a/b) = da/b - (a/b) db/b.
Gradients DivOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value lhs = builder.create<DivOp>(getLoc(), grads[0], getRhs(), PlaceAttr());
  Value rhs = builder.create<MulOp>(getLoc(), lhs, getResult(), PlaceAttr());
  rhs = sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()));
  return SmallVector<Value>{sumToShape(builder, getLoc(), lhs, tensorOf(getLhs())),
                            buildScale(builder, getLoc(), rhs, -1)};
}

Gradients ScaleOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{buildScale(builder, getLoc(), grads[0], getFactor().convertToDouble())};
}

Gradients ReluOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<ReluGradOp>(getLoc(), grads[0], getResult(), PlaceAttr())};
}

Gradients GeluOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<GeluGradOp>(getLoc(), grads[0], getInput(), PlaceAttr())};
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ElementwiseOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ElementwiseOps.cpp.inc"
