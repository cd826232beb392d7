// SPDX-License-Identifier: Apache-2.0
// Activations as scalar functions, which are their definition, and as graphs of other elementwise ops.
#include "ir/ops/elementwise/ActivationOps.h"
#include "ir/dialect/Expression.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/ElementwiseSupport.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

using Parts = SmallVector<Value>;

/// `a` where x stands to the number as the predicate says, else `b`.
static Expression choose(OpBuilder &builder, Expression x, StringRef predicate, double number, Value a, Value b) {
  Location loc = x.value().getLoc();
  Value condition = create<CompareOp>(builder, loc, x, x.number(number), predicate);
  return Expression(builder, loc, create<SelectOp>(builder, loc, condition, a, b));
}

static Expression clip(OpBuilder &builder, Expression x, double least, double most) {
  return Expression(
      builder, x.value().getLoc(),
      create<ClipOp>(builder, x.value().getLoc(), x, builder.getF64FloatAttr(least), builder.getF64FloatAttr(most)));
}

double HardSigmoidOp::evaluateScalar(ArrayRef<double> x) {
  return std::clamp(getAlpha().convertToDouble() * x[0] + getBeta().convertToDouble(), 0.0, 1.0);
}
Parts HardSigmoidOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {clip(builder, x * getAlpha().convertToDouble() + getBeta().convertToDouble(), 0, 1)};
}

double HardSwishOp::evaluateScalar(ArrayRef<double> x) { return x[0] * std::clamp(x[0] / 6 + 0.5, 0.0, 1.0); }
Parts HardSwishOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {x * clip(builder, x / 6.0 + 0.5, 0, 1)};
}

double SiluOp::evaluateScalar(ArrayRef<double> x) { return x[0] / (1 + std::exp(-x[0])); }
Parts SiluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {x * x.apply<SigmoidOp>()};
}

double SoftsignOp::evaluateScalar(ArrayRef<double> x) { return x[0] / (1 + std::abs(x[0])); }
Parts SoftsignOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {x / (x.apply<AbsOp>() + 1.0)};
}

double EluOp::evaluateScalar(ArrayRef<double> x) {
  return x[0] > 0 ? x[0] : getAlpha().convertToDouble() * std::expm1(x[0]);
}
/// e^x is taken of what is below 0 only, where it cannot overflow: an infinity on the way not taken would make the
/// gradient NaN.
Parts EluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput()), below = x.with<MinOp>(x.number(0));
  return {choose(builder, x, "gt", 0, x, below.apply<Expm1Op>() * getAlpha().convertToDouble())};
}

double SeluOp::evaluateScalar(ArrayRef<double> x) {
  return getGamma().convertToDouble() * (x[0] > 0 ? x[0] : getAlpha().convertToDouble() * std::expm1(x[0]));
}
Parts SeluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput()), below = x.with<MinOp>(x.number(0));
  double gamma = getGamma().convertToDouble();
  return {choose(builder, x, "gt", 0, x * gamma, below.apply<Expm1Op>() * (getAlpha().convertToDouble() * gamma))};
}

double CeluOp::evaluateScalar(ArrayRef<double> x) {
  double alpha = getAlpha().convertToDouble();
  return x[0] > 0 ? x[0] : alpha * std::expm1(x[0] / alpha);
}
Parts CeluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput()), below = x.with<MinOp>(x.number(0));
  double alpha = getAlpha().convertToDouble();
  return {choose(builder, x, "gt", 0, x, (below / alpha).apply<Expm1Op>() * alpha)};
}

double LeakyReluOp::evaluateScalar(ArrayRef<double> x) { return x[0] > 0 ? x[0] : getAlpha().convertToDouble() * x[0]; }
Parts LeakyReluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {choose(builder, x, "gt", 0, x, x * getAlpha().convertToDouble())};
}

double ThresholdedReluOp::evaluateScalar(ArrayRef<double> x) { return x[0] > getAlpha().convertToDouble() ? x[0] : 0; }
Parts ThresholdedReluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {choose(builder, x, "gt", getAlpha().convertToDouble(), x, x.number(0))};
}

double MishOp::evaluateScalar(ArrayRef<double> x) {
  return x[0] * std::tanh(std::log1p(std::exp(-std::abs(x[0]))) + std::max(x[0], 0.0));
}
Parts MishOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {x * x.apply<SoftplusOp>().apply<TanhOp>()};
}

double GeluErfOp::evaluateScalar(ArrayRef<double> x) { return x[0] / 2 * (1 + std::erf(x[0] / M_SQRT2)); }
Parts GeluErfOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  return {x * 0.5 * ((x * M_SQRT1_2).apply<ErfOp>() + 1.0)};
}

double ShrinkOp::evaluateScalar(ArrayRef<double> x) {
  double bias = getBias().convertToDouble(), lambd = getLambd().convertToDouble();
  return x[0] > lambd ? x[0] - bias : x[0] < -lambd ? x[0] + bias : 0;
}
Parts ShrinkOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  double bias = getBias().convertToDouble(), lambd = getLambd().convertToDouble();
  Expression below = choose(builder, x, "lt", -lambd, x + bias, x.number(0));
  return {choose(builder, x, "gt", lambd, x - bias, below)};
}

double PreluOp::evaluateScalar(ArrayRef<double> x) { return x[0] > 0 ? x[0] : x[1] * x[0]; }
Parts PreluOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput()), slope(builder, getLoc(), getSlope());
  return {choose(builder, x, "gt", 0, x, x * slope)};
}

} // namespace dg::ir

#define DG_OPS "ir/ops/elementwise/ActivationOps.cpp.inc"
#define DG_ADD_OPS addActivationOps
#include "ir/ops/Family.inc"
