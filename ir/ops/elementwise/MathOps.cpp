// SPDX-License-Identifier: Apache-2.0
// Functions of one float, element by element. Gradients are graphs of the same ops, so that they have gradients too.
#include "ir/ops/elementwise/MathOps.h"
#include "ir/dialect/Expression.h"
#include "ir/rules/ElementwiseSupport.h"
#include "ir/rules/GradientBuilding.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

// One line an op: its function of x in double.
#define DG_MATH(Op, function)                                                                                          \
  double Op::evaluateScalar(ArrayRef<double> x) { return function; }
DG_MATH(ReciprocalOp, 1 / x[0])
DG_MATH(SqrtOp, std::sqrt(x[0]))
DG_MATH(RsqrtOp, 1 / std::sqrt(x[0]))
DG_MATH(ExpOp, std::exp(x[0]))
DG_MATH(Expm1Op, std::expm1(x[0]))
DG_MATH(LogOp, std::log(x[0]))
DG_MATH(Log1pOp, std::log1p(x[0]))
DG_MATH(SinOp, std::sin(x[0]))
DG_MATH(CosOp, std::cos(x[0]))
DG_MATH(TanOp, std::tan(x[0]))
DG_MATH(AsinOp, std::asin(x[0]))
DG_MATH(AcosOp, std::acos(x[0]))
DG_MATH(AtanOp, std::atan(x[0]))
DG_MATH(SinhOp, std::sinh(x[0]))
DG_MATH(CoshOp, std::cosh(x[0]))
DG_MATH(TanhOp, std::tanh(x[0]))
DG_MATH(AsinhOp, std::asinh(x[0]))
DG_MATH(AcoshOp, std::acosh(x[0]))
DG_MATH(AtanhOp, std::atanh(x[0]))
DG_MATH(ErfOp, std::erf(x[0]))
DG_MATH(FloorOp, std::floor(x[0]))
DG_MATH(CeilOp, std::ceil(x[0]))
DG_MATH(RoundOp, std::nearbyint(x[0]))
DG_MATH(TruncOp, std::trunc(x[0]))
DG_MATH(SigmoidOp, 1 / (1 + std::exp(-x[0])))
DG_MATH(SoftplusOp, std::log1p(std::exp(-std::abs(x[0]))) + std::max(x[0], 0.0))
#undef DG_MATH

// The gradient at the input of the function y of x, where the one at y is g.
#define DG_GRADIENT(Op, formula)                                                                                       \
  Gradients Op::buildGradients(OpBuilder &builder, ValueRange grads) {                                                 \
    Expression g(builder, getLoc(), grads[0]), x(builder, getLoc(), getInput()), y(builder, getLoc(), getResult());    \
    (void)x, (void)y;                                                                                                  \
    return SmallVector<Value>{formula};                                                                                \
  }
DG_GRADIENT(ReciprocalOp, -(g *(y *y)))
DG_GRADIENT(SqrtOp, 0.5 * g / y)
DG_GRADIENT(RsqrtOp, -0.5 * g * (y * y * y))
DG_GRADIENT(ExpOp, g *y)
DG_GRADIENT(Expm1Op, g *(y + 1.0))
DG_GRADIENT(LogOp, g / x)
DG_GRADIENT(Log1pOp, g / (x + 1.0))
DG_GRADIENT(SinOp, g *x.apply<CosOp>())
DG_GRADIENT(CosOp, -(g *x.apply<SinOp>()))
DG_GRADIENT(TanOp, g *(y *y + 1.0))
DG_GRADIENT(AsinOp, g * (1.0 - x * x).apply<RsqrtOp>())
DG_GRADIENT(AcosOp, -(g * (1.0 - x * x).apply<RsqrtOp>()))
DG_GRADIENT(AtanOp, g / (x * x + 1.0))
DG_GRADIENT(SinhOp, g *x.apply<CoshOp>())
DG_GRADIENT(CoshOp, g *x.apply<SinhOp>())
DG_GRADIENT(TanhOp, g * (1.0 - y * y))
DG_GRADIENT(AsinhOp, g *(x *x + 1.0).apply<RsqrtOp>())
DG_GRADIENT(AcoshOp, g *(x *x - 1.0).apply<RsqrtOp>())
DG_GRADIENT(AtanhOp, g / (1.0 - x * x))
DG_GRADIENT(ErfOp, (2 / std::sqrt(M_PI)) * g * (-(x * x)).apply<ExpOp>())
DG_GRADIENT(SigmoidOp, g *(y * (1.0 - y)))
DG_GRADIENT(SoftplusOp, g *x.apply<SigmoidOp>())
#undef DG_GRADIENT

/// Steps: constant wherever there is a derivative.
#define DG_STEP(Op)                                                                                                    \
  Gradients Op::buildGradients(OpBuilder &builder, ValueRange) {                                                       \
    return SmallVector<Value>{buildZeros(builder, getLoc(), getInput())};                                              \
  }
DG_STEP(FloorOp)
DG_STEP(CeilOp)
DG_STEP(RoundOp)
DG_STEP(TruncOp)
#undef DG_STEP

} // namespace dg::ir

#define DG_OPS "ir/ops/elementwise/MathOps.cpp.inc"
#define DG_ADD_OPS addMathOps
#include "ir/ops/Family.inc"
