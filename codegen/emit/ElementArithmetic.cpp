// SPDX-License-Identifier: Apache-2.0
// Each op in its floating-point, signed and unsigned form.
#include "codegen/emit/ElementArithmetic.h"

#include "ir/dialect/ElementTypes.h"

#include <cmath>

using namespace mlir;

namespace dg::codegen {

namespace {
bool isReal(Value a) { return isa<FloatType>(getElementTypeOrSelf(a.getType())); }

Type shapedLike(Value like, Type element) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

Value isNan(KernelBuilder &k, Value a) { return k.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a); }

Value pickElements(KernelBuilder &k, Type type, Comparison comparison, Value a, Value b) {
  Value wins = compareElements(k, type, comparison, a, b);
  if (isReal(a))
    wins = k.create<arith::OrIOp>(wins, isNan(k, a)); // a NaN in b loses no comparison either: b is taken
  return k.select(wins, a, b);
}

/// Rounds to the precision of f16 or bf16, and widens again.
Value roundToHalf(KernelBuilder &k, Type to, Value a) {
  Type bits = k.getI32Type();
  if (getElementTypeOrSelf(a.getType()).isF64()) {
    // To f32 by rounding to odd, so that the second rounding is as good as one: an inexact even result moves to its odd
    // neighbour on the other side of the number.
    Value nearest = k.create<arith::TruncFOp>(shapedLike(a, k.getF32Type()), a);
    if (to.isBF16())
      return roundToHalf(k, to, nearest);
    Value back = k.create<arith::ExtFOp>(a.getType(), nearest);
    Value word = k.create<arith::BitcastOp>(shapedLike(a, bits), nearest);
    Value isEven = k.create<arith::CmpIOp>(arith::CmpIPredicate::eq, k.create<arith::AndIOp>(word, k.constant(1, word)),
                                           k.constant(0, word));
    Value isInexact = k.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, back, a);
    Value isBelow = k.create<arith::XOrIOp>(k.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, back, a),
                                            k.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, k.constant(0, a)));
    Value step = k.select(isBelow, k.constant(1, word), k.constant(-1, word));
    Value moved = k.create<arith::AddIOp>(word, step);
    Value odd = k.select(k.create<arith::AndIOp>(isEven, isInexact), moved, word);
    a = k.create<arith::BitcastOp>(nearest.getType(), odd);
  }
  if (to.isF16())
    return k.create<arith::ExtFOp>(a.getType(), Value(k.create<arith::TruncFOp>(shapedLike(a, to), a)));
  Value word = k.create<arith::BitcastOp>(shapedLike(a, bits), a), sixteen = k.constant(16, word);
  Value odd = k.create<arith::AndIOp>(k.create<arith::ShRUIOp>(word, sixteen), k.constant(1, word));
  Value rounded = k.create<arith::AddIOp>(k.create<arith::AddIOp>(word, k.constant(0x7fff, word)), odd);
  rounded = k.create<arith::AndIOp>(rounded, k.constant(0xffff0000, word));
  return k.select(isNan(k, a), a, k.create<arith::BitcastOp>(a.getType(), rounded));
}

Value realToInteger(KernelBuilder &k, Type to, Value a) {
  Type computed = computedOf(to);
  double end = std::ldexp(1.0, int(to.getIntOrFloatBitWidth()) - (ir::isUnsigned(to) ? 0 : 1));
  double start = ir::isUnsigned(to) ? 0 : -end;
  Value isHigh = k.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, a, k.constant(end, a));
  Value isLow = k.create<arith::CmpFOp>(arith::CmpFPredicate::ULE, a, k.constant(start, a)); // or NaN
  Value inside = k.select(k.create<arith::OrIOp>(isHigh, isLow), k.constant(0, a), a);
  Value number;
  if (to.getIntOrFloatBitWidth() < 32) {
    number = k.create<arith::FPToSIOp>(shapedLike(a, k.getI32Type()), inside);
    number = k.create<arith::TruncIOp>(shapedLike(a, computed), number);
  } else if (ir::isUnsigned(to)) {
    number = k.create<arith::FPToUIOp>(shapedLike(a, computed), inside);
  } else {
    number = k.create<arith::FPToSIOp>(shapedLike(a, computed), inside);
  }
  number = k.select(isHigh, elementConstant(k, to, ir::largestElement(to), number), number);
  Value low = k.select(isNan(k, a), k.constant(0, number), elementConstant(k, to, ir::smallestElement(to), number));
  return k.select(isLow, low, number);
}
} // namespace

Value elementConstant(KernelBuilder &k, Type type, double value, Value like) {
  Type computed = computedOf(type);
  TypedAttr attr;
  if (auto real = dyn_cast<FloatType>(computed)) {
    attr = k.getFloatAttr(real, value);
  } else {
    unsigned width = computed.getIntOrFloatBitWidth();
    double end = std::ldexp(1.0, int(width) - (ir::isUnsigned(type) ? 0 : 1));
    APInt bits = value >= end    ? (ir::isUnsigned(type) ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width))
                 : value <= -end ? APInt::getSignedMinValue(width)
                 : ir::isBool(type) ? APInt(1, value != 0)
                 : value < 0        ? APInt(64, uint64_t(int64_t(value)), true).sextOrTrunc(width)
                                    : APInt(64, uint64_t(value)).zextOrTrunc(width);
    attr = k.getIntegerAttr(computed, bits);
  }
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    attr = DenseElementsAttr::get(VectorType::get(vector.getShape(), computed), Attribute(attr));
  return k.create<arith::ConstantOp>(attr);
}

Value addElements(KernelBuilder &k, Value a, Value b) {
  return isReal(a) ? k.fadd(a, b) : k.create<arith::AddIOp>(a, b);
}
Value subElements(KernelBuilder &k, Value a, Value b) {
  return isReal(a) ? k.fsub(a, b) : k.create<arith::SubIOp>(a, b);
}
Value mulElements(KernelBuilder &k, Value a, Value b) {
  return isReal(a) ? k.fmul(a, b) : k.create<arith::MulIOp>(a, b);
}

Value divElements(KernelBuilder &k, Type type, Value a, Value b) {
  if (isReal(a))
    return k.fdiv(a, b);
  Value zero = k.constant(0, b), one = k.constant(1, b);
  Value isZero = k.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b, zero);
  Value divisor = k.select(isZero, one, b);
  if (ir::isUnsigned(type))
    return k.select(isZero, zero, k.create<arith::DivUIOp>(a, divisor));
  Value minusOne = k.constant(-1, b), isMinusOne = k.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b, minusOne);
  divisor = k.select(isMinusOne, one, divisor);
  Value quotient = k.create<arith::DivSIOp>(a, divisor);
  quotient = k.select(isMinusOne, k.create<arith::SubIOp>(zero, a), quotient);
  return k.select(isZero, zero, quotient);
}

Value minElements(KernelBuilder &k, Type type, Value a, Value b) { return pickElements(k, type, Comparison::lt, a, b); }
Value maxElements(KernelBuilder &k, Type type, Value a, Value b) { return pickElements(k, type, Comparison::gt, a, b); }

Value compareElements(KernelBuilder &k, Type type, Comparison comparison, Value a, Value b) {
  if (isReal(a)) {
    static constexpr arith::CmpFPredicate predicates[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                          arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                          arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return k.create<arith::CmpFOp>(predicates[int(comparison)], a, b);
  }
  using P = arith::CmpIPredicate;
  static constexpr P withSign[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge},
                     withoutSign[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  return k.create<arith::CmpIOp>((ir::isUnsigned(type) ? withoutSign : withSign)[int(comparison)], a, b);
}

Value convertElement(KernelBuilder &k, Type from, Type to, Value a) {
  if (from == to)
    return a;
  Type computed = shapedLike(a, computedOf(to));
  bool isHalf = to.isF16() || to.isBF16();
  if (ir::isBool(to))
    return compareElements(k, from, Comparison::ne, a, k.constant(0, a));
  if (isReal(a)) {
    if (isa<IntegerType>(to))
      return realToInteger(k, to, a);
    if (isHalf)
      return roundToHalf(k, to, a);
    if (a.getType() == computed)
      return a;
    return to.isF64() ? k.create<arith::ExtFOp>(computed, a) : Value(k.create<arith::TruncFOp>(computed, a));
  }
  if (isa<FloatType>(to)) {
    Value number = ir::isUnsigned(from) ? Value(k.create<arith::UIToFPOp>(computed, a))
                                        : Value(k.create<arith::SIToFPOp>(computed, a));
    return isHalf ? roundToHalf(k, to, number) : number;
  }
  unsigned width = to.getIntOrFloatBitWidth(), own = from.getIntOrFloatBitWidth();
  if (width < own)
    return k.create<arith::TruncIOp>(computed, a);
  if (width == own)
    return a;
  return ir::isUnsigned(from) ? Value(k.create<arith::ExtUIOp>(computed, a))
                              : Value(k.create<arith::ExtSIOp>(computed, a));
}

} // namespace dg::codegen
