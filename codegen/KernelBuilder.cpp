// SPDX-License-Identifier: Apache-2.0
// The short names of KernelBuilder in terms of the scf, memref, vector and arith dialects.
#include "codegen/KernelBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace dg::codegen {

KernelBuilder::KernelBuilder(func::FuncOp function, const Target &target)
    : ImplicitLocOpBuilder(function.getLoc(), OpBuilder::atBlockBegin(function.addEntryBlock())), target(target),
      lanes(target.lanes()), function(function) {}

Value KernelBuilder::stack(int64_t elements) {
  numStackBytes += (elements * 4 + 63) / 64 * 64;
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&function.getBody().front());
  return create<memref::AllocaOp>(MemRefType::get({elements}, getF32Type()), getI64IntegerAttr(64));
}

void KernelBuilder::loop(Value from, Value to, int64_t step, Body body) {
  auto loop = create<scf::ForOp>(from, to, index(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

KernelBuilder::Values KernelBuilder::loop(Value from, Value to, int64_t step, ValueRange carried, CarryingBody body) {
  auto loop = create<scf::ForOp>(from, to, index(step), carried);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  create<scf::YieldOp>(next);
  return Values(loop.getResults());
}

void KernelBuilder::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = create<scf::IfOp>(condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

KernelBuilder::Values KernelBuilder::ifElse(Value condition, TypeRange types, llvm::function_ref<Values()> then,
                                            llvm::function_ref<Values()> otherwise) {
  auto branch = create<scf::IfOp>(types, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  create<scf::YieldOp>(then());
  setInsertionPointToStart(branch.elseBlock());
  create<scf::YieldOp>(otherwise());
  return Values(branch.getResults());
}

void KernelBuilder::loopVectors(int64_t count, VectorBody body) { loopVectors(index(0), index(count), count, body); }

void KernelBuilder::loopVectors(Value from, Value to, int64_t count, VectorBody body) {
  int64_t rest = count % lanes, full = count - rest;
  if (full > 0)
    loop(from, rest ? min(to, index(full)) : to, lanes, [&](Value at) { body(at, {lanes, lanes}); });
  if (rest == 0)
    return;
  Lanes tail = {int64_t(llvm::bit_ceil(uint64_t(rest))), rest};
  if (getConstantIntValue(to) == count || full == 0)
    body(index(full), tail);
  else
    ifThen(isEqual(to, index(count)), [&] { body(index(full), tail); });
}

Value KernelBuilder::fold(Fold kind, Value to, int64_t count, llvm::function_ref<Value(Value, Lanes)> element) {
  double identity = kind == Fold::sum ? 0 : -std::numeric_limits<double>::infinity();
  auto combine = [&](Value a, Value b) { return kind == Fold::sum ? fadd(a, b) : fmax(a, b); };
  auto finish = [&](Value vector) { return kind == Fold::sum ? sumLanes(vector) : maxLanes(vector); };
  int64_t rest = count % lanes, full = count - rest;
  if (full == 0) {
    Lanes tail = {int64_t(llvm::bit_ceil(uint64_t(rest))), rest};
    return finish(mask(element(index(0), tail), tail, identity));
  }
  Value end = rest ? min(to, index(full)) : to;
  Value start = index(0);
  Values sums(1, splat(identity, lanes));
  constexpr int64_t width = 4;
  if (count >= 2 * width * lanes) {
    Value wideEnd = mul(div(end, width * lanes), width * lanes);
    sums.resize(width, sums.front());
    sums = loop(start, wideEnd, width * lanes, sums, [&](Value at, ValueRange carried) {
      Values next;
      for (int64_t i = 0; i < width; ++i)
        next.push_back(combine(carried[i], element(add(at, i * lanes), {lanes, lanes})));
      return next;
    });
    sums = {combine(combine(sums[0], sums[1]), combine(sums[2], sums[3]))};
    start = wideEnd;
  }
  sums = loop(start, end, lanes, sums, [&](Value at, ValueRange carried) -> Values {
    return {combine(carried[0], element(at, {lanes, lanes}))};
  });
  if (rest) {
    Lanes tail = {lanes, rest};
    auto last = [&]() -> Values { return {combine(sums[0], mask(element(index(full), tail), tail, identity))}; };
    if (getConstantIntValue(to) == count)
      sums = last();
    else
      sums = ifElse(isEqual(to, index(count)), sums[0].getType(), last, [&] { return sums; });
  }
  return finish(sums[0]);
}

VectorType KernelBuilder::vectorOf(int64_t width, Type element) { return VectorType::get({width}, element); }

Value KernelBuilder::laneMask(Lanes lanes) {
  return create<vector::ConstantMaskOp>(vectorOf(lanes.width, getI1Type()), getI64ArrayAttr({lanes.active}));
}

Value KernelBuilder::load(Value buffer, Value at, Lanes lanes, double other) {
  auto type = vectorOf(lanes.width, cast<MemRefType>(buffer.getType()).getElementType());
  if (!lanes.isMasked())
    return create<vector::LoadOp>(type, buffer, at);
  Value passThrough = create<arith::ConstantOp>(DenseElementsAttr::get(
      type, isa<FloatType>(type.getElementType()) ? Attribute(getFloatAttr(type.getElementType(), other))
                                                  : Attribute(getIntegerAttr(type.getElementType(), int64_t(other)))));
  return create<vector::MaskedLoadOp>(type, buffer, at, laneMask(lanes), passThrough);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Lanes lanes) {
  if (lanes.isMasked())
    create<vector::MaskedStoreOp>(buffer, at, laneMask(lanes), value);
  else
    create<vector::StoreOp>(value, buffer, at);
}

Value KernelBuilder::loadScalar(Value buffer, Value at) { return create<memref::LoadOp>(buffer, at); }
void KernelBuilder::storeScalar(Value value, Value buffer, Value at) { create<memref::StoreOp>(value, buffer, at); }
Value KernelBuilder::loadIndex(Value buffer, Value at) {
  return create<arith::IndexCastOp>(getIndexType(), loadScalar(buffer, at));
}

Value KernelBuilder::splat(Value scalar, int64_t width) {
  return create<vector::SplatOp>(vectorOf(width, scalar.getType()), scalar);
}
Value KernelBuilder::splat(double number, int64_t width) {
  return create<arith::ConstantOp>(DenseElementsAttr::get(vectorOf(width), float(number)));
}
Value KernelBuilder::constant(double value, Value like) {
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(type, Attribute(getFloatAttr(type.getElementType(), value))));
  return create<arith::ConstantOp>(getFloatAttr(like.getType(), value));
}

Value KernelBuilder::mask(Value value, Lanes lanes, double other) {
  return lanes.isMasked() ? select(laneMask(lanes), value, constant(other, value)) : value;
}

static arith::FastMathFlagsAttr contract(MLIRContext *context) {
  return arith::FastMathFlagsAttr::get(context, arith::FastMathFlags::contract);
}
Value KernelBuilder::fadd(Value a, Value b) { return create<arith::AddFOp>(a, b, contract(getContext())); }
Value KernelBuilder::fsub(Value a, Value b) { return create<arith::SubFOp>(a, b, contract(getContext())); }
Value KernelBuilder::fmul(Value a, Value b) { return create<arith::MulFOp>(a, b, contract(getContext())); }
Value KernelBuilder::fdiv(Value a, Value b) { return create<arith::DivFOp>(a, b, contract(getContext())); }
Value KernelBuilder::fma(Value a, Value b, Value c) { return create<math::FmaOp>(a, b, c); }
Value KernelBuilder::fmax(Value a, Value b) { return select(greater(a, b), a, b); }
Value KernelBuilder::sqrt(Value a) { return create<math::SqrtOp>(a); }
Value KernelBuilder::log(Value a) { return create<math::LogOp>(a); }

// The method of Cephes: e^x = 2^n · e^r with n = round(x / ln 2) and |r| <= ln 2 / 2, where ln 2 is subtracted in two
// parts and e^r is a polynomial of degree 6. 2^n is made of two factors, so that results up to the largest float are
// reached.
Value KernelBuilder::exp(Value a) {
  auto like = [&](double value) { return constant(value, a); };
  Type floats = a.getType();
  Type integers = isa<VectorType>(floats) ? Type(vectorOf(cast<VectorType>(floats).getNumElements(), getI32Type()))
                                          : Type(getI32Type());
  auto integer = [&](int32_t value) -> Value {
    TypedAttr attr = getI32IntegerAttr(value);
    if (auto type = dyn_cast<VectorType>(integers))
      attr = DenseElementsAttr::get(type, value);
    return create<arith::ConstantOp>(attr);
  };
  Value x = fmax(like(-87.5), a); // NaN passes: the second operand wins
  x = select(greater(x, like(89.0)), like(89.0), x);
  Value n = create<math::RoundEvenOp>(scale(x, 1.44269504088896341));
  Value r = fma(n, like(-0.693359375), x);
  r = fma(n, like(2.12194440e-4), r);
  Value p = like(1.9875691500e-4);
  for (double c : {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
    p = fma(p, r, like(c));
  Value y = fadd(fma(fmul(p, r), r, r), like(1.0));
  Value i = create<arith::FPToSIOp>(integers, n);
  Value half = create<arith::ShRSIOp>(i, integer(1));
  auto powerOfTwo = [&](Value exponent) -> Value {
    Value bits = create<arith::ShLIOp>(create<arith::AddIOp>(exponent, integer(127)), integer(23));
    return create<arith::BitcastOp>(floats, bits);
  };
  y = fmul(fmul(y, powerOfTwo(half)), powerOfTwo(create<arith::SubIOp>(i, half)));
  // The comparison is false for NaN, which therefore stays.
  return select(greater(like(-87.33654), a), like(0.0), y);
}

Value KernelBuilder::sumLanes(Value vector) {
  return create<vector::ReductionOp>(vector::CombiningKind::ADD, vector, arith::FastMathFlags::reassoc);
}
Value KernelBuilder::maxLanes(Value vector) {
  return create<vector::ReductionOp>(vector::CombiningKind::MAXNUMF, vector);
}

} // namespace dg::codegen
