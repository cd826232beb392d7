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

using Parts = SmallVector<Value>;

#define DG_REDUCTION_TYPE(Op)                                                                                          \
  FailureOr<Type> Op::inferType(Adaptor op, const Rejection &reject) { return inferReduction(op, reject); }
DG_REDUCTION_TYPE(ReduceMaxOp)
DG_REDUCTION_TYPE(ReduceMinOp)
DG_REDUCTION_TYPE(ReduceProdOp)
DG_REDUCTION_TYPE(ReduceL2Op)
#undef DG_REDUCTION_TYPE

static Type elementOf(Value value) { return tensorOf(value).getElementType(); }

/// As much as the parts of the formula take.
#define DG_REDUCTION_TYPE_IN(Op, domain)                                                                               \
  FailureOr<Type> Op::inferType(Adaptor op, const Rejection &reject) {                                                 \
    if (!isIn(domain, elementOf(op.getInput())))                                                                       \
      return reject("has input ", op.getInput().getType(), ", expected ", describe(domain), " (dg.cast makes them)");  \
    return inferReduction(op, reject);                                                                                 \
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
  OpCost Op::getCost() { return costPerElement(*this, 1); }
DG_PRIMITIVE_REDUCTION(ReduceMaxOp)
DG_PRIMITIVE_REDUCTION(ReduceMinOp)
DG_PRIMITIVE_REDUCTION(ReduceProdOp)
#undef DG_PRIMITIVE_REDUCTION

void ReduceMaxOp::compute(HostOperands operands, HostResults results) {
  std::fill(results[0].data.begin(), results[0].data.end(), smallestElement(elementOf(getInput())));
  foldInto(operands[0], getDims(), results[0],
           [](double best, double x) { return std::isnan(best) || best > x ? best : x; });
}
void ReduceMinOp::compute(HostOperands operands, HostResults results) {
  std::fill(results[0].data.begin(), results[0].data.end(), largestElement(elementOf(getInput())));
  foldInto(operands[0], getDims(), results[0],
           [](double best, double x) { return std::isnan(best) || best < x ? best : x; });
}
void ReduceProdOp::compute(HostOperands operands, HostResults results) {
  std::fill(results[0].data.begin(), results[0].data.end(), 1);
  foldInto(operands[0], getDims(), results[0], [](double product, double x) { return product * x; });
}

static Expression sum(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> dims, bool keep) {
  return Expression(builder, loc, create<ReduceSumOp>(builder, loc, value, dims, keep));
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
  Value isBest = create<CompareOp>(builder, loc, input, best, "eq");
  Expression mask(builder, loc, create<CastOp>(builder, loc, isBest, TypeAttr::get(elementOf(input))));
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
  auto compare = [&](Value a, Value b) -> Value { return create<CompareOp>(builder, loc, a, b, "eq"); };
  auto select = [&](Value condition, Value a, Value b) {
    return Expression(builder, loc, create<SelectOp>(builder, loc, condition, a, b));
  };
  Value isZero = compare(x, x.number(0));
  Expression others = select(isZero, x.number(1), x);
  Expression product(builder, loc, create<ReduceProdOp>(builder, loc, others, getDims(), true));
  Expression mask(builder, loc, create<CastOp>(builder, loc, isZero, TypeAttr::get(elementOf(x))));
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

void ReduceMeanOp::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x; });
  for (double &element : results[0].data)
    element /= sizeOf(getInput(), getDims());
}
Parts ReduceMeanOp::decompose(OpBuilder &builder) {
  Expression total = sum(builder, getLoc(), getInput(), getDims(), getKeep());
  double count = sizeOf(getInput(), getDims());
  // Of nothing: 0 / 0. Integers are divided as integers.
  if (count == 0 || isa<IntegerType>(elementOf(getInput())))
    return {total / total.number(count)};
  return {total / count};
}

void ReduceL1Op::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + std::abs(x); });
}
Parts ReduceL1Op::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {sum(builder, getLoc(), x.apply<AbsOp>(), getDims(), getKeep())};
}

void ReduceSumSquareOp::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x * x; });
}
Parts ReduceSumSquareOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {sum(builder, getLoc(), x * x, getDims(), getKeep())};
}

void ReduceL2Op::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x * x; });
  for (double &element : results[0].data)
    element = std::sqrt(element);
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

void ReduceLogSumOp::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + x; });
  for (double &element : results[0].data)
    element = std::log(element);
}
Parts ReduceLogSumOp::decompose(OpBuilder &builder) {
  return {sum(builder, getLoc(), getInput(), getDims(), getKeep()).apply<LogOp>()};
}

void ReduceLogSumExpOp::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double x) { return sum + std::exp(x); });
  for (double &element : results[0].data)
    element = std::log(element);
}
/// log Σ e^(x - m) + m with m the largest, or 0 where that is infinite.
Parts ReduceLogSumExpOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Expression x(builder, loc, getInput());
  Expression largest(builder, loc, create<ReduceMaxOp>(builder, loc, getInput(), getDims(), true));
  Value isInfinite = create<IsInfOp>(builder, loc, largest, true, true);
  Expression m(builder, loc, create<SelectOp>(builder, loc, isInfinite, x.number(0), largest));
  Expression y = sum(builder, loc, (x - m).apply<ExpOp>(), getDims(), true).apply<LogOp>() + m;
  return {buildReshape(builder, loc, y, tensorOf(getResult()).getShape())};
}

} // namespace dg::ir

#define DG_OPS "ir/ops/reduction/ReductionOps.cpp.inc"
#define DG_ADD_OPS addReductionOps
#include "ir/ops/Family.inc"
