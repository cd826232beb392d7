// SPDX-License-Identifier: Apache-2.0
// Reductions: largest, smallest and product are primitives, the others formulas around a sum.
#include "ir/ops/reduction/ReductionOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Expression.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/ElementwiseSupport.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/RootOfSum.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

using Gradients = FailureOr<SmallVector<Value>>;
using Parts = SmallVector<Value>;

#define DG_REDUCTION_TYPE(Op)                                                                                          \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,               \
                                     SmallVectorImpl<Type> &inferred) {                                                \
    return inferReduction<Op>(context, location, op, inferred);                                                        \
  }
DG_REDUCTION_TYPE(ReduceMaxOp)
DG_REDUCTION_TYPE(ReduceMinOp)
DG_REDUCTION_TYPE(ReduceProdOp)
DG_REDUCTION_TYPE(ReduceL2Op)
#undef DG_REDUCTION_TYPE

static Type elementOf(Value value) { return tensorOf(value).getElementType(); }

/// As much as the parts of the formula take.
#define DG_REDUCTION_TYPE_IN(Op, domain)                                                                               \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,               \
                                     SmallVectorImpl<Type> &inferred) {                                                \
    if (!isAny(op.getInput().getType()) && !isIn(domain, elementOf(op.getInput())))                                    \
      return reject<Op>(location, "has input ", op.getInput().getType(), ", expected ", describe(domain),              \
                        " (dg.cast makes them)");                                                                      \
    return inferReduction<Op>(context, location, op, inferred);                                                        \
  }
DG_REDUCTION_TYPE_IN(ReduceMeanOp, Domain::number)
DG_REDUCTION_TYPE_IN(ReduceL1Op, Domain::number)
DG_REDUCTION_TYPE_IN(ReduceSumSquareOp, Domain::number)
DG_REDUCTION_TYPE_IN(ReduceLogSumOp, Domain::real)
DG_REDUCTION_TYPE_IN(ReduceLogSumExpOp, Domain::real)
#undef DG_REDUCTION_TYPE_IN

//===- Primitives ------------------------------------------------------------------------------------------------===//

#define DG_PRIMITIVE_REDUCTION(Op)                                                                                     \
  ShardingRule Op::getShardingRule() { return reductionRule(*this, getDims(), getKeep(), /*isSum=*/false); }           \
  OpCost Op::getCost() { return {double(tensorOf(getInput()).getNumElements()), operandAndResultBytes(*this)}; }
DG_PRIMITIVE_REDUCTION(ReduceMaxOp)
DG_PRIMITIVE_REDUCTION(ReduceMinOp)
DG_PRIMITIVE_REDUCTION(ReduceProdOp)
#undef DG_PRIMITIVE_REDUCTION

LogicalResult ReduceMaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  std::fill(results[0].data.begin(), results[0].data.end(), smallestElement(elementOf(getInput())));
  foldInto(operands[0], getDims(), results[0],
           [](double best, double x) { return std::isnan(best) || best > x ? best : x; });
  return success();
}
LogicalResult ReduceMinOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  std::fill(results[0].data.begin(), results[0].data.end(), largestElement(elementOf(getInput())));
  foldInto(operands[0], getDims(), results[0],
           [](double best, double x) { return std::isnan(best) || best < x ? best : x; });
  return success();
}
LogicalResult ReduceProdOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const RunScalars &) {
  std::fill(results[0].data.begin(), results[0].data.end(), 1);
  foldInto(operands[0], getDims(), results[0], [](double product, double x) { return product * x; });
  return success();
}

static Expression sum(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> dims, bool keep) {
  return Expression(builder, loc, builder.create<ReduceSumOp>(loc, value, dims, keep, PlaceAttr()));
}

/// The value with its reduced dimensions kept as 1, so that it broadcasts to the input.
static Expression kept(OpBuilder &builder, Location loc, Value value, Value input, ArrayRef<int64_t> dims) {
  return Expression(builder, loc, buildReshape(builder, loc, value, keptShape(tensorOf(input).getShape(), dims)));
}

/// The gradient goes to the elements that are the result, in equal parts where there are several.
template <typename Op> static SmallVector<Value> extremeGradient(Op op, OpBuilder &builder, Value grad) {
  Location loc = op.getLoc();
  Value input = op.getInput();
  Expression g = kept(builder, loc, grad, input, op.getDims());
  Expression best = kept(builder, loc, op.getResult(), input, op.getDims());
  Value isBest = builder.create<CompareOp>(loc, input, best, "eq", PlaceAttr());
  Expression mask(builder, loc, builder.create<CastOp>(loc, isBest, TypeAttr::get(elementOf(input)), PlaceAttr()));
  return {mask * (g / sum(builder, loc, mask, op.getDims(), /*keep=*/true))};
}
Gradients ReduceMaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return extremeGradient(*this, builder, grads[0]);
}
Gradients ReduceMinOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return extremeGradient(*this, builder, grads[0]);
}

/// The product of the others: with p the product of all that are not 0, it is p / x where none is 0, p at the only 0,
/// and else 0.
Gradients ReduceProdOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  Expression x(builder, loc, getInput()), g = kept(builder, loc, grads[0], getInput(), getDims());
  auto compare = [&](Value a, Value b) -> Value { return builder.create<CompareOp>(loc, a, b, "eq", PlaceAttr()); };
  auto select = [&](Value condition, Value a, Value b) {
    return Expression(builder, loc, builder.create<SelectOp>(loc, condition, a, b, PlaceAttr()));
  };
  Value isZero = compare(x, x.number(0));
  Expression others = select(isZero, x.number(1), x);
  Expression product(builder, loc, builder.create<ReduceProdOp>(loc, others, getDims(), true, PlaceAttr()));
  Expression mask(builder, loc, builder.create<CastOp>(loc, isZero, TypeAttr::get(elementOf(x)), PlaceAttr()));
  Expression zeros = sum(builder, loc, mask, getDims(), /*keep=*/true);
  // The number of zeros among the others.
  Value hasNoOther = compare(zeros - mask, x.number(0));
  return SmallVector<Value>{g * select(hasNoOther, product / others, x.number(0))};
}

//===- Formulas around a sum -------------------------------------------------------------------------------------===//

static double sizeOf(Value input, ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t dim : dims)
    count *= double(tensorOf(input).getDimSize(dim));
  return count;
}

LogicalResult ReduceMeanOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x; });
  for (double &element : results[0].data)
    element /= sizeOf(getInput(), getDims());
  return success();
}
Parts ReduceMeanOp::decompose(OpBuilder &builder) {
  Expression total = sum(builder, getLoc(), getInput(), getDims(), getKeep());
  double count = sizeOf(getInput(), getDims());
  // Of nothing: 0 / 0. Integers are divided as integers.
  if (count == 0 || isa<IntegerType>(elementOf(getInput())))
    return {total / total.number(count)};
  return {total / count};
}

LogicalResult ReduceL1Op::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + std::abs(x); });
  return success();
}
Parts ReduceL1Op::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {sum(builder, getLoc(), x.apply<AbsOp>(), getDims(), getKeep())};
}

LogicalResult ReduceSumSquareOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                          const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x * x; });
  return success();
}
Parts ReduceSumSquareOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {sum(builder, getLoc(), x * x, getDims(), getKeep())};
}

LogicalResult ReduceL2Op::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x * x; });
  for (double &element : results[0].data)
    element = std::sqrt(element);
  return success();
}
/// Integers go through f64 and are cut.
Parts ReduceL2Op::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  bool isInteger = isa<IntegerType>(elementOf(x));
  if (isInteger)
    x = x.apply<CastOp>(TypeAttr::get(builder.getF64Type()));
  Expression root = rootOfSum(builder, getLoc(), sum(builder, getLoc(), x * x, getDims(), getKeep()), 2);
  return {isInteger ? root.apply<CastOp>(TypeAttr::get(elementOf(getInput()))) : root};
}

LogicalResult ReduceLogSumOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                       const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x; });
  for (double &element : results[0].data)
    element = std::log(element);
  return success();
}
Parts ReduceLogSumOp::decompose(OpBuilder &builder) {
  return {sum(builder, getLoc(), getInput(), getDims(), getKeep()).apply<LogOp>()};
}

LogicalResult ReduceLogSumExpOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                          const RunScalars &) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + std::exp(x); });
  for (double &element : results[0].data)
    element = std::log(element);
  return success();
}
/// log Σ e^(x - m) + m with m the largest, or 0 where that is infinite.
Parts ReduceLogSumExpOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Expression x(builder, loc, getInput());
  Expression largest(builder, loc, builder.create<ReduceMaxOp>(loc, getInput(), getDims(), true, PlaceAttr()));
  Value isInfinite = builder.create<IsInfOp>(loc, largest, true, true, PlaceAttr());
  Expression m(builder, loc, builder.create<SelectOp>(loc, isInfinite, x.number(0), largest, PlaceAttr()));
  Expression y = sum(builder, loc, (x - m).apply<ExpOp>(), getDims(), true).apply<LogOp>() + m;
  return {buildReshape(builder, loc, y, tensorOf(getResult()).getShape())};
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/reduction/ReductionOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/reduction/ReductionOps.cpp.inc"
