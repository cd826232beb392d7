// SPDX-License-Identifier: Apache-2.0
// Arithmetic element by element, and the two activations that have their own gradient ops, for speed.
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/dialect/Expression.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/ElementwiseSupport.h"
#include "ir/rules/GradientBuilding.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- Scalar functions ------------------------------------------------------------------------------------------===//

double AddOp::evaluateScalar(ArrayRef<double> x) { return x[0] + x[1]; }
double SubOp::evaluateScalar(ArrayRef<double> x) { return x[0] - x[1]; }
double MulOp::evaluateScalar(ArrayRef<double> x) { return x[0] * x[1]; }
static bool isInteger(Value value) { return isa<IntegerType>(tensorOf(value).getElementType()); }

double DivOp::evaluateScalar(ArrayRef<double> x) {
  if (isInteger(getResult()))
    return x[1] == 0 ? 0 : std::trunc(x[0] / x[1]);
  return x[0] / x[1];
}
double PowOp::evaluateScalar(ArrayRef<double> x) { return std::pow(x[0], x[1]); }
double ModOp::evaluateScalar(ArrayRef<double> x) {
  if (isInteger(getResult()) && x[1] == 0)
    return 0;
  double rest = std::fmod(x[0], x[1]);
  return !getFmod() && rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}
double MinOp::evaluateScalar(ArrayRef<double> x) { return std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]; }
double MaxOp::evaluateScalar(ArrayRef<double> x) { return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; }
double NegOp::evaluateScalar(ArrayRef<double> x) { return -x[0]; }
double AbsOp::evaluateScalar(ArrayRef<double> x) { return std::abs(x[0]); }
double SignOp::evaluateScalar(ArrayRef<double> x) { return x[0] > 0 ? 1 : x[0] < 0 ? -1 : x[0]; }
double ClipOp::evaluateScalar(ArrayRef<double> x) {
  double y = x[0];
  if (auto least = getMin(); least && y < least->convertToDouble())
    y = least->convertToDouble();
  if (auto most = getMax(); most && y > most->convertToDouble())
    y = most->convertToDouble();
  return y;
}
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
  Value lhs = create<MulOp>(builder, getLoc(), grads[0], getRhs());
  Value rhs = create<MulOp>(builder, getLoc(), grads[0], getLhs());
  return SmallVector<Value>{sumToShape(builder, getLoc(), lhs, tensorOf(getLhs())),
                            sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()))};
}

/// d(a/b) = da/b - (a/b) db/b.
Gradients DivOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value lhs = create<DivOp>(builder, getLoc(), grads[0], getRhs());
  Value rhs = create<MulOp>(builder, getLoc(), lhs, getResult());
  rhs = sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()));
  return SmallVector<Value>{sumToShape(builder, getLoc(), lhs, tensorOf(getLhs())),
                            buildScale(builder, getLoc(), rhs, -1)};
}

/// da^b = b a^(b-1) da + a^b log a db, where the second is 0 for a base that has no logarithm. The first is 0 for the
/// exponent 0, also where a^-1 is infinite, as in PyTorch.
Gradients PowOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression g(builder, getLoc(), grads[0]), a(builder, getLoc(), getLhs()), b(builder, getLoc(), getRhs()),
      y(builder, getLoc(), getResult());
  Value lhs = g * b * a.with<PowOp>(b - 1.0), zero = a.number(0);
  auto known = getRhs().getDefiningOp<ConstantOp>(); // most exponents are, and not 0
  if (!known || known.getValue().isZero()) {
    Value isZero = create<CompareOp>(builder, getLoc(), b, zero, "eq");
    lhs = create<SelectOp>(builder, getLoc(), isZero, zero, lhs);
  }
  Value isPositive = create<CompareOp>(builder, getLoc(), a, zero, "gt");
  Value base = create<SelectOp>(builder, getLoc(), isPositive, a, a.number(1));
  Value rhs = g * y * Expression(builder, getLoc(), base).apply<LogOp>();
  return SmallVector<Value>{sumToShape(builder, getLoc(), lhs, tensorOf(getLhs())),
                            sumToShape(builder, getLoc(), rhs, tensorOf(getRhs()))};
}

/// a mod b = a - b · floor(a / b), or trunc with `fmod`.
Gradients ModOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression g(builder, getLoc(), grads[0]), a(builder, getLoc(), getLhs()), b(builder, getLoc(), getRhs());
  Expression whole = getFmod() ? (a / b).apply<TruncOp>() : (a / b).apply<FloorOp>();
  return SmallVector<Value>{sumToShape(builder, getLoc(), grads[0], tensorOf(getLhs())),
                            sumToShape(builder, getLoc(), -(g * whole), tensorOf(getRhs()))};
}

/// The gradient goes to the operand that was taken: a where `predicate` holds of a and b, else b.
static SmallVector<Value> chooseGradients(OpBuilder &builder, Operation *op, Value grad, StringRef predicate) {
  Location loc = op->getLoc();
  Value a = op->getOperand(0), b = op->getOperand(1), zero = Expression(builder, loc, grad).number(0);
  Value isFirst = create<CompareOp>(builder, loc, a, b, predicate);
  Value lhs = create<SelectOp>(builder, loc, isFirst, grad, zero);
  Value rhs = create<SelectOp>(builder, loc, isFirst, zero, grad);
  return {sumToShape(builder, loc, lhs, tensorOf(a)), sumToShape(builder, loc, rhs, tensorOf(b))};
}
Gradients MinOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return chooseGradients(builder, *this, grads[0], "lt");
}
Gradients MaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return chooseGradients(builder, *this, grads[0], "gt");
}

Gradients NegOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<NegOp>(builder, getLoc(), grads[0])};
}
Gradients AbsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression g(builder, getLoc(), grads[0]), x(builder, getLoc(), getInput());
  return SmallVector<Value>{g * x.apply<SignOp>()};
}
Gradients SignOp::buildGradients(OpBuilder &builder, ValueRange) {
  return SmallVector<Value>{buildZeros(builder, getLoc(), getInput())};
}
/// What was held at a limit has none: there the result differs from the input.
Gradients ClipOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value isFree = create<CompareOp>(builder, getLoc(), getInput(), getResult(), "eq");
  Value zero = Expression(builder, getLoc(), grads[0]).number(0);
  return SmallVector<Value>{create<SelectOp>(builder, getLoc(), isFree, grads[0], zero)};
}

Gradients ScaleOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{buildScale(builder, getLoc(), grads[0], getFactor().convertToDouble())};
}

Gradients ReluOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<ReluGradOp>(builder, getLoc(), grads[0], getResult())};
}

Gradients GeluOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<GeluGradOp>(builder, getLoc(), grads[0], getInput())};
}

/// Linear in the gradient, and constant in the output wherever there is a derivative.
Gradients ReluGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<ReluGradOp>(builder, getLoc(), grads[0], getOutput()),
                            buildZeros(builder, getLoc(), getOutput())};
}

/// With u = s (x + c x³) and t = tanh u the second derivative is (1 - t²) (u' + x/2 (u'' - 2 t u'²)).
Gradients GeluGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression g(builder, getLoc(), grads[0]), x(builder, getLoc(), getInput()), first(builder, getLoc(), getGrad());
  Expression square = x * x;
  Expression t = (x * (square * (geluSlope * geluCubic) + geluSlope)).apply<TanhOp>();
  Expression slope = square * (3 * geluSlope * geluCubic) + geluSlope;
  Expression curve = x * (6 * geluSlope * geluCubic) - 2.0 * (t * (slope * slope));
  Expression second = (1.0 - t * t) * (slope + 0.5 * (x * curve));
  return SmallVector<Value>{create<GeluGradOp>(builder, getLoc(), grads[0], getInput()), g * first * second};
}

} // namespace dg::ir

#define DG_OPS "ir/ops/elementwise/ElementwiseOps.cpp.inc"
#define DG_ADD_OPS addElementwiseOps
#include "ir/ops/Family.inc"
