// SPDX-License-Identifier: Apache-2.0
// Comparison, logic, bits, choice and conversion, element by element.
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/dialect/Expression.h"
#include "ir/rules/ElementwiseSupport.h"
#include "ir/rules/GradientBuilding.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

static Type elementOf(Value value) { return tensorOf(value).getElementType(); }

//===- Types -----------------------------------------------------------------------------------------------------===//

FailureOr<Type> CompareOp::inferType(Adaptor op, const Rejection &reject) {
  if (!llvm::is_contained({"eq", "ne", "lt", "le", "gt", "ge"}, op.getPredicate()))
    return reject("has the predicate ", op.getPredicateAttr(), ", expected eq, ne, lt, le, gt or ge");
  return inferElementwise(reject, op.getOperands(), Domain::any, IntegerType::get(op.getLhs().getContext(), 1));
}

FailureOr<Type> SelectOp::inferType(Adaptor op, const Rejection &reject) {
  if (!isBool(elementOf(op.getCondition())))
    return reject("has the condition ", op.getCondition().getType(), ", expected bools (i1)");
  return inferElementwise(reject, op.getOperands(), Domain::any, {}, /*first=*/1);
}

FailureOr<Type> CastOp::inferType(Adaptor op, const Rejection &reject) {
  if (!isElementType(op.getTo()))
    return reject("casts to ", op.getTo(), ", expected one of ", elementTypeNames);
  return inferElementwise(reject, op.getOperands(), Domain::any, op.getTo());
}

//===- Scalar functions ------------------------------------------------------------------------------------------===//

double CompareOp::evaluateScalar(ArrayRef<double> x) {
  StringRef predicate = getPredicate();
  if (predicate == "eq")
    return x[0] == x[1];
  if (predicate == "ne")
    return x[0] != x[1];
  if (predicate == "lt")
    return x[0] < x[1];
  if (predicate == "le")
    return x[0] <= x[1];
  return predicate == "gt" ? x[0] > x[1] : x[0] >= x[1];
}

double LogicalAndOp::evaluateScalar(ArrayRef<double> x) { return x[0] != 0 && x[1] != 0; }
double LogicalOrOp::evaluateScalar(ArrayRef<double> x) { return x[0] != 0 || x[1] != 0; }
double LogicalXorOp::evaluateScalar(ArrayRef<double> x) { return (x[0] != 0) != (x[1] != 0); }
double LogicalNotOp::evaluateScalar(ArrayRef<double> x) { return x[0] == 0; }

/// The bits of a whole number as 64 of them, with its sign repeated.
static uint64_t bitsOf(double value) { return value < 0 ? uint64_t(int64_t(value)) : uint64_t(value); }
static double numberOf(uint64_t bits, Value like) {
  return isUnsigned(elementOf(like)) ? double(bits) : double(int64_t(bits));
}

double BitAndOp::evaluateScalar(ArrayRef<double> x) { return numberOf(bitsOf(x[0]) & bitsOf(x[1]), getResult()); }
double BitOrOp::evaluateScalar(ArrayRef<double> x) { return numberOf(bitsOf(x[0]) | bitsOf(x[1]), getResult()); }
double BitXorOp::evaluateScalar(ArrayRef<double> x) { return numberOf(bitsOf(x[0]) ^ bitsOf(x[1]), getResult()); }
double BitNotOp::evaluateScalar(ArrayRef<double> x) {
  // ~x = -1 - x in any width; the type wraps it.
  return isUnsigned(elementOf(getResult()))
             ? std::ldexp(1.0, int(elementOf(getResult()).getIntOrFloatBitWidth())) - 1 - x[0]
             : -1 - x[0];
}
double ShiftOp::evaluateScalar(ArrayRef<double> x) {
  double places = std::min(x[1] < 0 ? 64.0 : x[1], 64.0);
  return getRight() ? std::floor(std::ldexp(x[0], -int(places))) : std::ldexp(x[0], int(places));
}

double IsNanOp::evaluateScalar(ArrayRef<double> x) { return std::isnan(x[0]); }
double IsInfOp::evaluateScalar(ArrayRef<double> x) {
  return std::isinf(x[0]) && (std::signbit(x[0]) ? getNegative() : getPositive());
}
double SelectOp::evaluateScalar(ArrayRef<double> x) { return x[0] != 0 ? x[1] : x[2]; }

double CastOp::evaluateScalar(ArrayRef<double> x) {
  Type to = getTo();
  if (isa<FloatType>(to) || isBool(to))
    return isBool(to) ? x[0] != 0 : x[0];
  if (isa<IntegerType>(elementOf(getInput())))
    return x[0]; // the type wraps it
  if (std::isnan(x[0]))
    return 0;
  double end = std::ldexp(1.0, int(to.getIntOrFloatBitWidth()) - (isUnsigned(to) ? 0 : 1));
  // The last number before the end; of 64 bits the last one that is a double.
  double last = end - 1 < end ? end - 1 : std::nextafter(end, 0);
  return std::clamp(std::trunc(x[0]), isUnsigned(to) ? 0 : -end, last);
}

//===- Gradients -------------------------------------------------------------------------------------------------===//

Gradients SelectOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  SmallVector<Value> gradients(3);
  if (!isa<FloatType>(elementOf(getResult())))
    return gradients;
  Value zero = Expression(builder, getLoc(), grads[0]).number(0);
  Value lhs = create<SelectOp>(builder, getLoc(), getCondition(), grads[0], zero);
  Value rhs = create<SelectOp>(builder, getLoc(), getCondition(), zero, grads[0]);
  gradients[1] = sumToShape(builder, getLoc(), lhs, tensorOf(getLhs()));
  gradients[2] = sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()));
  return gradients;
}

Gradients CastOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Type from = elementOf(getInput());
  if (!isa<FloatType>(from) || !isa<FloatType>(getTo()))
    return SmallVector<Value>{Value()};
  return SmallVector<Value>{create<CastOp>(builder, getLoc(), grads[0], TypeAttr::get(from))};
}

} // namespace dg::ir

#define DG_OPS "ir/ops/elementwise/LogicOps.cpp.inc"
#define DG_ADD_OPS addLogicOps
#include "ir/ops/Family.inc"
