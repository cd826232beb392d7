// SPDX-License-Identifier: Apache-2.0
// The root that ends a norm: of a sum of powers, which may be 0.
#pragma once

#include "ir/dialect/Expression.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"

namespace dg::ir {

/// sum^(1/p). Where the sum is 0 the root's gradient is infinite, and 0 times it no number: it is taken to be 0, as in
/// PyTorch.
inline Expression rootOfSum(mlir::OpBuilder &builder, mlir::Location loc, Expression sum, double p) {
  mlir::Value isSome =
      create<CompareOp>(builder, loc, sum.value(), sum.number(0).value(), builder.getStringAttr("ne")); // a NaN too
  auto whereSome = [&](Expression value, double otherwise) {
    return Expression(builder, loc,
                      create<SelectOp>(builder, loc, isSome, value.value(), sum.number(otherwise).value()));
  };
  Expression base = whereSome(sum, 1);
  return whereSome(p == 2 ? base.apply<SqrtOp>() : base.with<PowOp>(base.number(1 / p)), 0);
}

} // namespace dg::ir
