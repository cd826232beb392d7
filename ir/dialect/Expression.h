// SPDX-License-Identifier: Apache-2.0
// Elementwise graphs that read like their formulas: gradients and decompositions write `grad * (1 - y * y)`.
#pragma once

#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"

namespace dg::ir {

/// A value of floats together with where ops on it are built. Numbers become constants of one element.
class Expression {
public:
  Expression(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value)
      : builder(&builder), loc(loc), own(value) {}

  mlir::Value value() const { return own; }
  operator mlir::Value() const { return own; }

  /// A unary op of any family on this.
  template <typename Op, typename... Attributes> Expression apply(Attributes &&...attributes) const {
    return of(create<Op>(*builder, loc, own, std::forward<Attributes>(attributes)...));
  }
  /// A binary op of this and another.
  template <typename Op> Expression with(Expression other) const {
    return of(create<Op>(*builder, loc, own, other.own));
  }
  /// A number of this value's element type.
  Expression number(double number) const {
    auto type = mlir::RankedTensorType::get({}, tensorOf(own).getElementType());
    return of(create<ConstantOp>(*builder, loc, type, builder->getF64FloatAttr(number), mlir::TypeAttr::get(type)));
  }

  friend Expression operator+(Expression a, Expression b) { return a.with<AddOp>(b); }
  friend Expression operator-(Expression a, Expression b) { return a.with<SubOp>(b); }
  friend Expression operator*(Expression a, Expression b) { return a.with<MulOp>(b); }
  friend Expression operator/(Expression a, Expression b) { return a.with<DivOp>(b); }
  friend Expression operator+(Expression a, double b) { return a + a.number(b); }
  friend Expression operator+(double a, Expression b) { return b + a; }
  friend Expression operator-(Expression a, double b) { return a + -b; }
  friend Expression operator-(double a, Expression b) { return b.number(a) - b; }
  friend Expression operator*(Expression a, double b) { return a.apply<ScaleOp>(llvm::APFloat(b)); }
  friend Expression operator*(double a, Expression b) { return b * a; }
  friend Expression operator/(Expression a, double b) { return a * (1 / b); }
  friend Expression operator/(double a, Expression b) { return b.number(a) / b; }
  friend Expression operator-(Expression a) { return a * -1.0; }

private:
  Expression of(mlir::Value value) const { return Expression(*builder, loc, value); }

  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value own;
};

} // namespace dg::ir
