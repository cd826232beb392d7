// SPDX-License-Identifier: Apache-2.0
// What each elementwise op computes, on vectors (or scalars) of its operands' elements.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/VectorMath.h"
#include "codegen/kernels/ElementwiseKernels.h"
#include "codegen/kernels/RandomKernels.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using ElementFunction = Value (*)(KernelBuilder &, Operation *, ValueRange);
using Table = llvm::StringMap<ElementFunction>;

Type typeOf(Operation *op, unsigned operand = 0) {
  return cast<RankedTensorType>(op->getOperand(operand).getType()).getElementType();
}
bool isReal(Value a) { return isa<FloatType>(getElementTypeOrSelf(a.getType())); }

//===- Arithmetic ------------------------------------------------------------------------------------------------===//

/// By squaring, as many steps as an exponent has bits that matter; a negative exponent leaves 0 but for 1 and -1.
Value integerPower(KernelBuilder &k, Type type, Value base, Value exponent) {
  Value result = k.constant(1, base), power = base, rest = exponent, zero = k.constant(0, base),
        one = k.constant(1, base);
  for (unsigned bit = 0; bit < std::min(type.getIntOrFloatBitWidth(), 32u); ++bit) {
    Value isSet = k.create<arith::CmpIOp>(arith::CmpIPredicate::ne, k.create<arith::AndIOp>(rest, one), zero);
    result = k.select(isSet, k.create<arith::MulIOp>(result, power), result);
    power = k.create<arith::MulIOp>(power, power);
    rest = k.create<arith::ShRUIOp>(rest, one);
  }
  if (ir::isUnsigned(type))
    return result;
  Value isNegative = compareElements(k, type, Comparison::lt, exponent, zero);
  Value isOdd = k.create<arith::CmpIOp>(arith::CmpIPredicate::ne, k.create<arith::AndIOp>(exponent, one), zero);
  Value minusOne = k.constant(-1, base);
  Value ofMinusOne = k.select(isOdd, minusOne, one);
  Value inverse = k.select(compareElements(k, type, Comparison::eq, base, one), one, zero);
  inverse = k.select(compareElements(k, type, Comparison::eq, base, minusOne), ofMinusOne, inverse);
  return k.select(isNegative, inverse, result);
}

Value emitPow(KernelBuilder &k, Operation *op, ValueRange v) {
  return isReal(v[0]) ? vmath::pow(k, v[0], v[1]) : integerPower(k, typeOf(op), v[0], v[1]);
}

/// The rest with the sign of a; without `fmod` the divisor is added where the signs differ.
Value emitMod(KernelBuilder &k, Operation *op, ValueRange v) {
  Type type = typeOf(op);
  Value rest = isReal(v[0]) ? Value(k.create<arith::RemFOp>(v[0], v[1]))
                            : subElements(k, v[0], mulElements(k, divElements(k, type, v[0], v[1]), v[1]));
  Value zero = k.constant(0, rest);
  if (!isReal(v[0])) // x mod 0 is 0, where x - (x / 0) · 0 is x
    rest = k.select(compareElements(k, type, Comparison::eq, v[1], zero), zero, rest);
  if (cast<ir::ModOp>(op).getFmod() || (isa<IntegerType>(type) && ir::isUnsigned(type)))
    return rest;
  Value differs = k.create<arith::XOrIOp>(compareElements(k, type, Comparison::lt, rest, zero),
                                          compareElements(k, type, Comparison::lt, v[1], zero));
  Value isNotZero = compareElements(k, type, Comparison::ne, rest, zero);
  return k.select(k.create<arith::AndIOp>(differs, isNotZero), addElements(k, rest, v[1]), rest);
}

Value emitNeg(KernelBuilder &k, Operation *, ValueRange v) {
  return isReal(v[0]) ? Value(k.create<arith::NegFOp>(v[0])) : subElements(k, k.constant(0, v[0]), v[0]);
}

Value emitAbs(KernelBuilder &k, Operation *op, ValueRange v) {
  if (isReal(v[0]))
    return k.create<math::AbsFOp>(v[0]);
  return ir::isUnsigned(typeOf(op)) ? v[0] : Value(k.create<math::AbsIOp>(v[0]));
}

Value emitSign(KernelBuilder &k, Operation *op, ValueRange v) {
  Type type = typeOf(op);
  Value zero = k.constant(0, v[0]), one = k.constant(1, v[0]);
  Value result = k.select(compareElements(k, type, Comparison::gt, v[0], zero), one, v[0]);
  if (isa<IntegerType>(type) && ir::isUnsigned(type))
    return result;
  return k.select(compareElements(k, type, Comparison::lt, v[0], zero), k.constant(-1, v[0]), result);
}

/// Held by comparisons that are false for NaN, which stays.
Value emitClip(KernelBuilder &k, Operation *op, ValueRange v) {
  auto clip = cast<ir::ClipOp>(op);
  Type type = typeOf(op);
  Value y = v[0];
  if (auto least = clip.getMin()) {
    Value limit = elementConstant(k, type, least->convertToDouble(), y);
    y = k.select(compareElements(k, type, Comparison::lt, y, limit), limit, y);
  }
  if (auto most = clip.getMax()) {
    Value limit = elementConstant(k, type, most->convertToDouble(), y);
    y = k.select(compareElements(k, type, Comparison::gt, y, limit), limit, y);
  }
  return y;
}

Value emitRelu(KernelBuilder &k, Operation *op, ValueRange v) {
  Value zero = k.constant(0, v[0]);
  return isReal(v[0]) ? k.fmax(zero, v[0]) : maxElements(k, typeOf(op), v[0], zero);
}

/// gelu(x) = x · s with s = 1 / (1 + e^-2u), u = √(2/π) (x + 0.044715 x³): the same as the tanh form, without its
/// cancellation.
struct GeluParts {
  Value sigmoid;    ///< s
  Value complement; ///< 1 - s, exact where s is nearly 1
};
GeluParts geluParts(KernelBuilder &k, Value x) {
  constexpr double a = 0.7978845608028654, b = 0.044715; // √(2/π)
  Value square = k.fmul(x, x);
  Value u = k.fmul(x, k.fma(square, k.constant(-2 * a * b, x), k.constant(-2 * a, x)));
  // Beyond this the result is 0 to the last bit, and e^-2u stays finite.
  u = k.select(k.greater(u, k.constant(80, u)), k.constant(80, u), u);
  Value e = k.exp(u);
  Value sigmoid = k.fdiv(k.constant(1, e), k.fadd(k.constant(1, e), e));
  return {sigmoid, k.fmul(e, sigmoid)};
}

Value geluGrad(KernelBuilder &k, Operation *, ValueRange v) {
  constexpr double a = 0.7978845608028654, b = 0.044715;
  Value x = v[1];
  auto [s, t] = geluParts(k, x);
  // d(x·s)/dx = s + x · s · (1-s) · 2u'
  Value slope = k.fma(k.fmul(x, x), k.constant(6 * a * b, x), k.constant(2 * a, x));
  return k.fmul(v[0], k.fma(k.fmul(x, k.fmul(s, t)), slope, s));
}

void addArithmetic(Table &table) {
  table["dg.add"] = [](KernelBuilder &k, Operation *, ValueRange v) { return addElements(k, v[0], v[1]); };
  table["dg.sub"] = [](KernelBuilder &k, Operation *, ValueRange v) { return subElements(k, v[0], v[1]); };
  table["dg.mul"] = [](KernelBuilder &k, Operation *, ValueRange v) { return mulElements(k, v[0], v[1]); };
  table["dg.div"] = [](KernelBuilder &k, Operation *op, ValueRange v) {
    return divElements(k, typeOf(op), v[0], v[1]);
  };
  table["dg.min"] = [](KernelBuilder &k, Operation *op, ValueRange v) {
    return minElements(k, typeOf(op), v[0], v[1]);
  };
  table["dg.max"] = [](KernelBuilder &k, Operation *op, ValueRange v) {
    return maxElements(k, typeOf(op), v[0], v[1]);
  };
  table["dg.pow"] = emitPow;
  table["dg.mod"] = emitMod;
  table["dg.neg"] = emitNeg;
  table["dg.abs"] = emitAbs;
  table["dg.sign"] = emitSign;
  table["dg.clip"] = emitClip;
  table["dg.scale"] = [](KernelBuilder &k, Operation *op, ValueRange v) {
    return k.scale(v[0], cast<ir::ScaleOp>(op).getFactor().convertToDouble());
  };
  table["dg.relu"] = emitRelu;
  table["dg.relu_grad"] = [](KernelBuilder &k, Operation *, ValueRange v) {
    Value zero = k.constant(0, v[0]);
    return k.select(k.greater(v[1], zero), v[0], zero);
  };
  table["dg.gelu"] = [](KernelBuilder &k, Operation *, ValueRange v) {
    return k.fmul(v[0], geluParts(k, v[0]).sigmoid);
  };
  table["dg.gelu_grad"] = geluGrad;
}

//===- Functions of one float ------------------------------------------------------------------------------------===//

template <Value (*function)(KernelBuilder &, Value)> Value unary(KernelBuilder &k, Operation *, ValueRange v) {
  return function(k, v[0]);
}
template <typename Op> Value mathOp(KernelBuilder &k, Operation *, ValueRange v) { return k.create<Op>(v[0]); }

void addMath(Table &table) {
  table["dg.sin"] = unary<vmath::sin>;
  table["dg.cos"] = unary<vmath::cos>;
  table["dg.tan"] = unary<vmath::tan>;
  table["dg.asin"] = unary<vmath::asin>;
  table["dg.acos"] = unary<vmath::acos>;
  table["dg.atan"] = unary<vmath::atan>;
  table["dg.sinh"] = unary<vmath::sinh>;
  table["dg.cosh"] = unary<vmath::cosh>;
  table["dg.tanh"] = unary<vmath::tanh>;
  table["dg.asinh"] = unary<vmath::asinh>;
  table["dg.acosh"] = unary<vmath::acosh>;
  table["dg.atanh"] = unary<vmath::atanh>;
  table["dg.erf"] = unary<vmath::erf>;
  table["dg.exp"] = unary<vmath::exp>;
  table["dg.expm1"] = unary<vmath::expm1>;
  table["dg.log"] = unary<vmath::log>;
  table["dg.log1p"] = unary<vmath::log1p>;
  table["dg.sigmoid"] = unary<vmath::sigmoid>;
  table["dg.softplus"] = unary<vmath::softplus>;
  table["dg.sqrt"] = mathOp<math::SqrtOp>;
  table["dg.floor"] = mathOp<math::FloorOp>;
  table["dg.ceil"] = mathOp<math::CeilOp>;
  table["dg.round"] = mathOp<math::RoundEvenOp>;
  table["dg.trunc"] = mathOp<math::TruncOp>;
  table["dg.reciprocal"] = [](KernelBuilder &k, Operation *, ValueRange v) {
    return k.fdiv(k.constant(1, v[0]), v[0]);
  };
  table["dg.normalize"] = [](KernelBuilder &k, Operation *, ValueRange v) {
    return k.fma(k.fsub(v[0], v[1]), v[2], v[3]);
  };
  table["dg.rsqrt"] = [](KernelBuilder &k, Operation *, ValueRange v) {
    return k.fdiv(k.constant(1, v[0]), k.sqrt(v[0]));
  };
}

//===- Comparison, logic, bits, conversion -----------------------------------------------------------------------===//

Value emitCompare(KernelBuilder &k, Operation *op, ValueRange v) {
  StringRef predicate = cast<ir::CompareOp>(op).getPredicate();
  static constexpr llvm::StringLiteral names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  auto place = llvm::find(names, predicate) - std::begin(names);
  return compareElements(k, typeOf(op), Comparison(place), v[0], v[1]);
}

/// A shift by as many places as there are bits, or more, is asked of LLVM in two steps that it defines.
Value emitShift(KernelBuilder &k, Operation *op, ValueRange v) {
  Type type = typeOf(op);
  bool isRight = cast<ir::ShiftOp>(op).getRight(), keepsSign = isRight && !ir::isUnsigned(type);
  Value last = k.constant(double(type.getIntOrFloatBitWidth() - 1), v[1]);
  // Negative numbers of places are more than any as unsigned ones.
  Value isFar = k.create<arith::CmpIOp>(arith::CmpIPredicate::ugt, v[1], last);
  Value places = k.select(isFar, last, v[1]);
  if (keepsSign)
    return k.create<arith::ShRSIOp>(v[0], places);
  Value near = isRight ? Value(k.create<arith::ShRUIOp>(v[0], places)) : Value(k.create<arith::ShLIOp>(v[0], places));
  return k.select(isFar, k.constant(0, v[0]), near);
}

Value emitIsInf(KernelBuilder &k, Operation *op, ValueRange v) {
  auto isInf = cast<ir::IsInfOp>(op);
  auto equals = [&](double number) {
    return k.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, v[0], k.constant(number, v[0]));
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value positive = equals(isInf.getPositive() ? infinity : -infinity);
  Value negative = equals(isInf.getNegative() ? -infinity : infinity);
  // Neither sign is asked for: no number is both.
  return isInf.getPositive() || isInf.getNegative() ? Value(k.create<arith::OrIOp>(positive, negative))
                                                    : Value(k.create<arith::AndIOp>(positive, negative));
}

template <typename Op> Value bits(KernelBuilder &k, Operation *, ValueRange v) { return k.create<Op>(v[0], v[1]); }
Value invert(KernelBuilder &k, Operation *, ValueRange v) {
  Value ones = v[0].getType() == k.getI1Type() || getElementTypeOrSelf(v[0].getType()).isInteger(1)
                   ? k.constant(1, v[0])
                   : k.constant(-1, v[0]);
  return k.create<arith::XOrIOp>(v[0], ones);
}

void addLogic(Table &table) {
  table["dg.compare"] = emitCompare;
  table["dg.logical_and"] = table["dg.bit_and"] = bits<arith::AndIOp>;
  table["dg.logical_or"] = table["dg.bit_or"] = bits<arith::OrIOp>;
  table["dg.logical_xor"] = table["dg.bit_xor"] = bits<arith::XOrIOp>;
  table["dg.logical_not"] = table["dg.bit_not"] = invert;
  table["dg.shift"] = emitShift;
  table["dg.is_nan"] = [](KernelBuilder &k, Operation *, ValueRange v) -> Value {
    return k.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, v[0], v[0]);
  };
  table["dg.is_inf"] = emitIsInf;
  table["dg.select"] = [](KernelBuilder &k, Operation *, ValueRange v) { return k.select(v[0], v[1], v[2]); };
  table["dg.cast"] = [](KernelBuilder &k, Operation *op, ValueRange v) {
    return convertElement(k, typeOf(op), cast<ir::CastOp>(op).getTo(), v[0]);
  };
}

const Table &functions() {
  static const Table table = [] {
    Table rows;
    addArithmetic(rows);
    addMath(rows);
    addLogic(rows);
    rows["dg.random_bits"] = emitRandomBits;
    return rows;
  }();
  return table;
}
} // namespace

SmallVector<StringRef> elementFunctionNames() { return llvm::to_vector(functions().keys()); }

Value emitElementFunction(KernelBuilder &kernel, Operation *op, ValueRange operands) {
  auto function = functions().find(op->getName().getStringRef());
  return function == functions().end() ? Value() : function->second(kernel, op, operands);
}

} // namespace dg::codegen
