// SPDX-License-Identifier: Apache-2.0
// Range reduction and polynomials. Arguments for which a function does not exist give NaN, as the C library's do.
#include "codegen/emit/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace dg::codegen::vmath {

namespace {

Type shapedLike(Value like, Type element) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}
bool isF64(Value x) { return getElementTypeOrSelf(x.getType()).isF64(); }

/// Formulas over values of one type, with the kernel at hand.
struct Maths {
  KernelBuilder &k;

  Value number(double value, Value like) { return k.constant(value, like); }
  Value less(Value a, double b) { return k.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, number(b, a)); }
  Value greater(Value a, double b) { return k.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, number(b, a)); }
  Value equal(Value a, double b) { return k.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, number(b, a)); }
  Value isNan(Value a) { return k.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a); }
  Value add(Value a, double b) { return k.fadd(a, number(b, a)); }
  Value abs(Value a) { return k.create<mlir::math::AbsFOp>(a); }
  Value sqrt(Value a) { return k.create<mlir::math::SqrtOp>(a); }
  Value neg(Value a) { return k.create<arith::NegFOp>(a); }
  Value copySign(Value magnitude, Value sign) { return k.create<mlir::math::CopySignOp>(magnitude, sign); }
  Value roundEven(Value a) { return k.create<mlir::math::RoundEvenOp>(a); }

  /// Coefficients from the highest power down.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.front(), x);
    for (double c : coefficients.drop_front())
      sum = k.fma(sum, x, number(c, x));
    return sum;
  }
  /// The same with a leading 1.
  Value monic(Value x, ArrayRef<double> coefficients) {
    Value sum = add(x, coefficients.front());
    for (double c : coefficients.drop_front())
      sum = k.fma(sum, x, number(c, x));
    return sum;
  }
};

/// Runs a function of f64 on f32 too, with one rounding at the end.
template <typename Function> Value inDouble(KernelBuilder &k, Value x, Function function) {
  if (isF64(x))
    return function(x);
  Value wide = function(k.create<arith::ExtFOp>(shapedLike(x, k.getF64Type()), x));
  return k.create<arith::TruncFOp>(x.getType(), wide);
}

/// 2^n of whole numbers n in [-1022, 1023], as f64.
Value powerOfTwo(Maths &m, Value n) {
  KernelBuilder &k = m.k;
  Value small = k.create<arith::FPToSIOp>(shapedLike(n, k.getI32Type()), n);
  Value wide = k.create<arith::ExtSIOp>(shapedLike(n, k.getI64Type()), small);
  Value bits = k.create<arith::ShLIOp>(k.create<arith::AddIOp>(wide, k.constant(1023, wide)), k.constant(52, wide));
  return k.create<arith::BitcastOp>(n.getType(), bits);
}

/// e^x = 2^n e^r with r = x - n ln 2, e^r = 1 + 2 r P(r²) / (Q(r²) - r P(r²)).
Value exp64(Maths m, Value x) {
  KernelBuilder &k = m.k;
  Value inside = k.select(m.greater(x, 710), m.number(710, x), x);
  inside = k.select(m.less(inside, -746), m.number(-746, x), inside);
  Value n = m.roundEven(k.scale(inside, 1.4426950408889634073599));
  n = k.select(m.isNan(x), m.number(0, x), n);
  Value r = k.fma(n, m.number(-6.93145751953125E-1, x), inside);
  r = k.fma(n, m.number(-1.42860682030941723212E-6, x), r);
  Value square = k.fmul(r, r);
  Value p = k.fmul(
      r, m.polynomial(square, {1.26177193074810590878E-4, 3.02994407707441961300E-2, 9.99999999999999999910E-1}));
  Value q = m.polynomial(square, {3.00198505138664455042E-6, 2.52448340349684104192E-3, 2.27265548208155028766E-1,
                                  2.00000000000000000009E0});
  Value y = m.add(k.scale(k.fdiv(p, k.fsub(q, p)), 2), 1);
  // Two factors, so that the largest and the subnormal results are reached.
  Value half = k.create<mlir::math::FloorOp>(k.scale(n, 0.5));
  return k.fmul(k.fmul(y, powerOfTwo(m, half)), powerOfTwo(m, k.fsub(n, half)));
}

/// log x = log m + e ln 2 with m in [√½, √2).
Value log64(Maths m, Value x) {
  KernelBuilder &k = m.k;
  Type integers = shapedLike(x, k.getI64Type());
  Value isTiny = m.less(x, 2.2250738585072014e-308);
  Value scaled = k.select(isTiny, k.scale(x, 0x1p54), x);
  Value bits = k.create<arith::BitcastOp>(integers, scaled);
  Value exponent = k.create<arith::ShRUIOp>(bits, k.constant(52, bits));
  Value e = k.create<arith::SIToFPOp>(shapedLike(x, k.getF64Type()),
                                      k.create<arith::TruncIOp>(shapedLike(x, k.getI32Type()), exponent));
  e = m.add(e, -1022);
  e = k.select(isTiny, m.add(e, -54), e);
  Value mantissa = k.create<arith::OrIOp>(k.create<arith::AndIOp>(bits, k.constant(0xfffffffffffffp0, bits)),
                                          k.constant(double(0x3fe0000000000000), bits));
  Value f = k.create<arith::BitcastOp>(x.getType(), mantissa); // [½, 1)
  Value isLow = m.less(f, M_SQRT1_2);
  e = k.select(isLow, m.add(e, -1), e);
  Value z = m.add(k.select(isLow, k.fadd(f, f), f), -1);
  Value square = k.fmul(z, z);
  Value p = m.polynomial(z, {1.01875663804580931796E-4, 4.97494994976747001425E-1, 4.70579119878881725854E0,
                             1.44989225341610930846E1, 1.79368678507819816313E1, 7.70838733755885391666E0});
  Value q = m.monic(z, {1.12873587189167450590E1, 4.52279145837532221105E1, 8.29875266912776603211E1,
                        7.11544750618563894466E1, 2.31251620126765340583E1});
  Value y = k.fmul(z, k.fdiv(k.fmul(square, p), q));
  y = k.fma(e, m.number(-2.121944400546905827679E-4, e), y);
  y = k.fma(square, m.number(-0.5, square), y);
  y = k.fma(e, m.number(0.693359375, e), k.fadd(z, y));
  y = k.select(m.equal(x, INFINITY), x, y);
  y = k.select(m.equal(x, 0), m.number(-INFINITY, x), y);
  return k.select(k.create<arith::OrIOp>(m.less(x, 0), m.isNan(x)), m.number(NAN, x), y);
}

/// log(u) · x / (u - 1) with u = 1 + x: the error of u cancels (W. Kahan).
Value log1p64(Maths m, Value x) {
  KernelBuilder &k = m.k;
  Value u = m.add(x, 1);
  // A product and a sum may fuse elsewhere; this sum has to be the rounded one.
  Value y = k.fmul(log64(m, u), k.fdiv(x, m.add(u, -1)));
  y = k.select(m.equal(u, 1), x, y);
  return k.select(m.equal(u, INFINITY), u, y);
}

/// (u - 1) · x / log(u) with u = e^x, likewise.
Value expm164(Maths m, Value x) {
  KernelBuilder &k = m.k;
  Value u = exp64(m, x), less = m.add(u, -1);
  Value y = k.fmul(less, k.fdiv(x, log64(m, u)));
  y = k.select(m.equal(u, 1), x, y);
  y = k.select(m.equal(less, -1), less, y);
  return k.select(m.equal(u, INFINITY), u, y);
}

/// Sine (or cosine) from the argument less the nearest multiple of π/2, in three parts.
Value sine64(Maths m, Value x, bool isCosine) {
  KernelBuilder &k = m.k;
  Value n = m.roundEven(k.scale(x, M_2_PI));
  Value r = k.fma(n, m.number(-2 * 7.85398125648498535156E-1, n), x);
  r = k.fma(n, m.number(-2 * 3.77489470793079817668E-8, n), r);
  r = k.fma(n, m.number(-2 * 2.69515142907905952645E-15, n), r);
  Value square = k.fmul(r, r);
  Value sine =
      m.polynomial(square, {1.58962301576546568060E-10, -2.50507477628578072866E-8, 2.75573136213857245213E-6,
                            -1.98412698295895385996E-4, 8.33333333332211858878E-3, -1.66666666666666307295E-1});
  sine = k.fma(k.fmul(r, square), sine, r);
  Value cosine =
      m.polynomial(square, {-1.13585365213876817300E-11, 2.08757008419747316778E-9, -2.75573141792967388112E-7,
                            2.48015872888517045348E-5, -1.38888888888730564116E-3, 4.16666666666665929218E-2});
  cosine = k.fma(k.fmul(square, square), cosine, k.fma(square, m.number(-0.5, r), m.number(1, r)));
  // The quadrant, 0 to 3, in floats: no conversion that an infinity could break.
  Value quadrant = isCosine ? m.add(n, 1) : n;
  quadrant = k.fsub(quadrant, k.scale(k.create<mlir::math::FloorOp>(k.scale(quadrant, 0.25)), 4));
  Value isTurned = k.create<arith::OrIOp>(m.equal(quadrant, 1), m.equal(quadrant, 3));
  Value y = k.select(isTurned, cosine, sine);
  return k.select(m.greater(quadrant, 1.5), m.neg(y), y);
}

Value atan64(Maths m, Value argument) {
  KernelBuilder &k = m.k;
  Value x = m.abs(argument);
  Value isLarge = m.greater(x, 2.41421356237309504880), isMiddle = m.greater(x, 0.66);
  Value reduced = k.select(isMiddle, k.fdiv(m.add(x, -1), m.add(x, 1)), x);
  reduced = k.select(isLarge, k.fdiv(m.number(-1, x), x), reduced);
  Value start = k.select(isMiddle, m.number(M_PI_4, x), m.number(0, x));
  start = k.select(isLarge, m.number(M_PI_2, x), start);
  Value more = k.select(isMiddle, m.number(0.5 * 6.123233995736765886130E-17, x), m.number(0, x));
  more = k.select(isLarge, m.number(6.123233995736765886130E-17, x), more);
  Value square = k.fmul(reduced, reduced);
  Value p = m.polynomial(square, {-8.750608600031904122785E-1, -1.615753718733365076637E1, -7.500855792314704667340E1,
                                  -1.228866684490136173410E2, -6.485021904942025371773E1});
  Value q = m.monic(square, {2.485846490142306297962E1, 1.650270098316988542046E2, 4.328810604912902668951E2,
                             4.853903996359136964868E2, 1.945506571482613964425E2});
  Value tail = k.fma(reduced, k.fdiv(k.fmul(square, p), q), k.fadd(reduced, more));
  return m.copySign(k.fadd(start, tail), argument);
}

Value erf64(Maths m, Value argument) {
  KernelBuilder &k = m.k;
  Value x = m.abs(argument), square = k.fmul(argument, argument);
  Value t = m.polynomial(square, {9.60497373987051638749E0, 9.00260197203842689217E1, 2.23200534594684319226E3,
                                  7.00332514112805075473E3, 5.55923013010394962768E4});
  Value u = m.monic(square, {3.35617141647503099647E1, 5.21357949780152679795E2, 4.59432382970980127987E3,
                             2.26290000613890934246E4, 4.92673942608635921086E4});
  Value small = k.fmul(argument, k.fdiv(t, u));
  Value held = k.select(m.greater(x, 8), m.number(8, x), x);
  Value p = m.polynomial(held, {2.46196981473530512524E-10, 5.64189564831068821977E-1, 7.46321056442269912687E0,
                                4.86371970985681366614E1, 1.96520832956077098242E2, 5.26445194995477358631E2,
                                9.34528527171957607540E2, 1.02755188689515710272E3, 5.57535335369399327526E2});
  Value q = m.monic(held, {1.32281951154744992508E1, 8.67072140885989742329E1, 3.54937778887819891062E2,
                           9.75708501743205489753E2, 1.82390916687909736289E3, 2.24633760818710981792E3,
                           1.65666309194161350182E3, 5.57535340817727675546E2});
  Value complement = k.fmul(exp64(m, m.neg(k.fmul(held, held))), k.fdiv(p, q));
  Value large = m.copySign(k.fsub(m.number(1, x), complement), argument);
  return k.select(m.greater(x, 1), large, small);
}

/// Cephes' logf.
Value log32(Maths m, Value x) {
  KernelBuilder &k = m.k;
  Value isTiny = m.less(x, 1.17549435e-38);
  Value scaled = k.select(isTiny, k.scale(x, 0x1p25), x);
  Value bits = k.create<arith::BitcastOp>(shapedLike(x, k.getI32Type()), scaled);
  Value e = k.create<arith::SIToFPOp>(x.getType(), k.create<arith::ShRUIOp>(bits, k.constant(23, bits)));
  e = m.add(e, -126);
  e = k.select(isTiny, m.add(e, -25), e);
  Value mantissa =
      k.create<arith::OrIOp>(k.create<arith::AndIOp>(bits, k.constant(0x7fffff, bits)), k.constant(0x3f000000, bits));
  Value f = k.create<arith::BitcastOp>(x.getType(), mantissa);
  Value isLow = m.less(f, M_SQRT1_2);
  e = k.select(isLow, m.add(e, -1), e);
  Value z = m.add(k.select(isLow, k.fadd(f, f), f), -1);
  Value square = k.fmul(z, z);
  Value y = m.polynomial(z, {7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1, -1.2420140846E-1, 1.4249322787E-1,
                             -1.6668057665E-1, 2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1});
  y = k.fmul(y, k.fmul(z, square));
  y = k.fma(e, m.number(-2.12194440e-4, e), y);
  y = k.fma(square, m.number(-0.5, square), y);
  y = k.fma(e, m.number(0.693359375, e), k.fadd(z, y));
  y = k.select(m.equal(x, INFINITY), x, y);
  y = k.select(m.equal(x, 0), m.number(-INFINITY, x), y);
  return k.select(k.create<arith::OrIOp>(m.less(x, 0), m.isNan(x)), m.number(NAN, x), y);
}

/// Near 0 an odd polynomial, further out 1 - 2 / (e^2x + 1).
Value tanh32(Maths m, Value argument) {
  KernelBuilder &k = m.k;
  Value x = m.abs(argument), square = k.fmul(argument, argument);
  Value small = m.polynomial(
      square, {-5.70498872745E-3, 2.06390887954E-2, -5.37397155531E-2, 1.33314422036E-1, -3.33332819422E-1});
  small = k.fma(k.fmul(small, square), argument, argument);
  Value e = k.exp(k.fadd(x, x));
  Value large = m.copySign(k.fsub(m.number(1, x), k.fdiv(m.number(2, x), m.add(e, 1))), argument);
  return k.select(m.greater(x, 0.625), large, small);
}

Value erf32(Maths m, Value argument) {
  KernelBuilder &k = m.k;
  Value t = m.abs(argument), s = k.fmul(argument, argument);
  Value r = k.fma(m.number(-1.72853470e-5, t), t, m.number(3.83197126e-4, t));
  Value u = k.fma(m.number(-3.88396438e-3, t), t, m.number(2.42546219e-2, t));
  r = k.fma(r, s, u);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    r = k.fma(r, t, m.number(c, t));
  r = k.fma(r, t, m.neg(t));
  Value large = m.copySign(k.fsub(m.number(1, t), k.exp(r)), argument);
  Value small =
      m.polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  small = k.fma(small, argument, argument);
  Value y = k.select(m.greater(t, 0.927734375), large, small);
  // From here on the last place of 1 does not move, and the polynomial above would turn.
  return k.select(m.greater(t, 4), m.copySign(m.number(1, t), argument), y);
}

} // namespace

Value exp(KernelBuilder &k, Value x) { return isF64(x) ? exp64({k}, x) : k.exp(x); }
Value log(KernelBuilder &k, Value x) { return isF64(x) ? log64({k}, x) : log32({k}, x); }
Value expm1(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return expm164({k}, a); });
}
Value log1p(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return log1p64({k}, a); });
}
Value sin(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return sine64({k}, a, false); });
}
Value cos(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return sine64({k}, a, true); });
}
Value tan(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return k.fdiv(sine64({k}, a, false), sine64({k}, a, true)); });
}
Value atan(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) { return atan64({k}, a); });
}
Value asin(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value one = m.number(1, a);
    return atan64(m, k.fdiv(a, m.sqrt(k.fmul(k.fsub(one, a), k.fadd(one, a)))));
  });
}
Value acos(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value one = m.number(1, a);
    return k.scale(atan64(m, m.sqrt(k.fdiv(k.fsub(one, a), k.fadd(one, a)))), 2);
  });
}
Value sinh(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value t = expm164(m, m.abs(a));
    Value y = k.scale(k.fadd(t, k.fdiv(t, m.add(t, 1))), 0.5);
    return m.copySign(k.select(m.equal(t, INFINITY), t, y), a);
  });
}
Value cosh(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value e = exp64(m, m.abs(a));
    return k.scale(k.fadd(e, k.fdiv(m.number(1, e), e)), 0.5);
  });
}
Value tanh(KernelBuilder &k, Value x) {
  Maths m{k};
  if (!isF64(x))
    return tanh32(m, x);
  // Beyond 20 it is 1 to the last bit, and e^2x stays finite.
  Value held = k.select(m.greater(m.abs(x), 20), m.number(20, x), m.abs(x));
  Value t = expm164(m, k.fadd(held, held));
  return m.copySign(k.select(m.isNan(x), x, k.fdiv(t, m.add(t, 2))), x);
}
/// log(x + √(x² + 1)) = log1p(x + x² / (1 + √(x² + 1))).
Value asinh(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value z = m.abs(a), square = k.fmul(z, z);
    Value y = log1p64(m, k.fadd(z, k.fdiv(square, m.add(m.sqrt(m.add(square, 1)), 1))));
    // Where the square would overflow: log 2x.
    y = k.select(m.greater(z, 1e150), m.add(log64(m, z), M_LN2), y);
    return m.copySign(y, a);
  });
}
Value acosh(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value t = m.add(a, -1);
    Value y = log1p64(m, k.fadd(t, m.sqrt(k.fma(t, t, k.fadd(t, t)))));
    return k.select(m.greater(a, 1e150), m.add(log64(m, a), M_LN2), y);
  });
}
Value atanh(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value z = m.abs(a);
    Value y = k.scale(log1p64(m, k.fdiv(k.fadd(z, z), k.fsub(m.number(1, z), z))), 0.5);
    return m.copySign(y, a);
  });
}
Value erf(KernelBuilder &k, Value x) { return isF64(x) ? erf64({k}, x) : erf32({k}, x); }
Value sigmoid(KernelBuilder &k, Value x) {
  Maths m{k};
  return k.fdiv(m.number(1, x), m.add(exp(k, m.neg(x)), 1));
}
/// max(x, 0) + log1p(e^-|x|).
Value softplus(KernelBuilder &k, Value x) {
  return inDouble(k, x, [&](Value a) {
    Maths m{k};
    Value positive = k.select(m.less(a, 0), m.number(0, a), a);
    return k.fadd(positive, log1p64(m, exp64(m, m.neg(m.abs(a)))));
  });
}

Value pow(KernelBuilder &k, Value x, Value y) {
  if (isF64(x))
    return k.create<mlir::math::PowFOp>(x, y);
  Maths m{k};
  Type wide = shapedLike(x, k.getF64Type());
  Value a = k.create<arith::ExtFOp>(wide, x), b = k.create<arith::ExtFOp>(wide, y);
  Value result = exp64(m, k.fmul(b, log64(m, m.abs(a))));
  // A negative base: the sign of an odd power, and none where the power is not whole.
  Value isWhole = k.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, b, m.roundEven(b));
  Value half = k.scale(b, 0.5);
  Value isOdd =
      k.create<arith::AndIOp>(isWhole, k.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, half, m.roundEven(half)));
  Value isNegative = m.less(m.copySign(m.number(1, a), a), 0);
  result = k.select(k.create<arith::AndIOp>(isNegative, isOdd), m.neg(result), result);
  // -∞ and -0 have powers that are not whole; other negative numbers have none.
  Value hasNone = k.create<arith::AndIOp>(k.create<arith::AndIOp>(m.less(a, 0), m.greater(a, -INFINITY)),
                                          k.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, b, m.roundEven(b)));
  result = k.select(hasNone, m.number(NAN, a), result);
  // (±1)^±∞ = 1, and x^0 = 1^y = 1 even for NaN.
  Value isOne = k.create<arith::AndIOp>(m.equal(m.abs(a), 1), m.equal(m.abs(b), INFINITY));
  isOne = k.create<arith::OrIOp>(isOne, k.create<arith::OrIOp>(m.equal(b, 0), m.equal(a, 1)));
  result = k.select(isOne, m.number(1, a), result);
  return k.create<arith::TruncFOp>(x.getType(), result);
}

} // namespace dg::codegen::vmath
