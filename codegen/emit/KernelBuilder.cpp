// SPDX-License-Identifier: Apache-2.0
// The short names of KernelBuilder in terms of the scf, memref, vector and arith dialects.
#include "codegen/emit/KernelBuilder.h"

#include "codegen/emit/VectorMath.h"
#include "runtime/abi/KernelAbi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace dg::codegen {

Type storageOf(Type element) {
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), std::max(8u, integer.getWidth()));
  return element;
}

Type computedOf(Type element) {
  if (element.isBF16() || element.isF16())
    return Float32Type::get(element.getContext());
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

static FloatType realOf(MLIRContext *context, ArrayRef<Type> elements) {
  bool isWide = llvm::any_of(elements, [](Type element) { return element.isF64(); });
  return isWide ? FloatType(Float64Type::get(context)) : FloatType(Float32Type::get(context));
}

static Target targetOf(Target target, FloatType real) {
  target.realBytes = real.getWidth() / 8;
  return target;
}

KernelBuilder::KernelBuilder(func::FuncOp function, ArrayRef<Type> elements, const Target &target)
    : ImplicitLocOpBuilder(function.getLoc(), OpBuilder::atBlockBegin(function.addEntryBlock())),
      real(realOf(function.getContext(), elements)), target(targetOf(target, real)), lanes(this->target.lanes()),
      function(function), elements(elements) {}

Type KernelBuilder::elementOf(Value buffer) {
  if (auto argument = dyn_cast<BlockArgument>(buffer))
    return elements[argument.getArgNumber()];
  return cast<MemRefType>(buffer.getType()).getElementType();
}

Value KernelBuilder::lr() {
  // The call: a pointer to the scalars, and one to the buffers.
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  Value scalars = create<LLVM::LoadOp>(pointer, buffer(numBuffers()));
  Value at =
      create<LLVM::GEPOp>(pointer, getI8Type(), scalars, ArrayRef<LLVM::GEPArg>{int32_t(offsetof(dg_scalars, lr))});
  Value argument = create<LLVM::LoadOp>(getF32Type(), at);
  return real.isF32() ? argument : create<arith::ExtFOp>(real, argument);
}

Value KernelBuilder::stack(int64_t elements, Type element) {
  if (!element)
    element = real;
  numStackBytes += (elements * (element.getIntOrFloatBitWidth() / 8) + 63) / 64 * 64;
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&function.getBody().front());
  return create<memref::AllocaOp>(MemRefType::get({elements}, element), getI64IntegerAttr(64));
}

void KernelBuilder::loop(Value from, Value to, int64_t step, Body body) {
  auto loop = create<scf::ForOp>(from, to, index(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

KernelBuilder::Values KernelBuilder::loop(Value from, Value to, int64_t step, ValueRange carried, CarryingBody body) {
  if (carried.empty()) {
    this->loop(from, to, step, [&](Value at) { body(at, {}); });
    return {};
  }
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

/// `type` with the shape of `like`, which is a scalar or a vector.
static Type shapedLike(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

Value KernelBuilder::fromStorage(Value stored, Type element) {
  auto as = [&](Type type) { return shapedLike(stored.getType(), type); };
  if (element.isF16())
    return create<arith::ExtFOp>(as(getF32Type()), stored);
  if (element.isBF16()) {
    Value bits = create<arith::ExtUIOp>(as(getI32Type()), stored);
    return create<arith::BitcastOp>(as(getF32Type()), create<arith::ShLIOp>(bits, constant(16, bits)));
  }
  if (element.isInteger(1))
    return create<arith::CmpIOp>(arith::CmpIPredicate::ne, stored, constant(0, stored));
  return stored;
}

Value KernelBuilder::toStorage(Value computed, Type element) {
  auto as = [&](Type type) { return shapedLike(computed.getType(), type); };
  if (element.isF16())
    return create<arith::TruncFOp>(as(element), computed);
  if (element.isBF16()) {
    // To nearest, ties to even; done on bits, since few processors have the instruction.
    Value bits = create<arith::BitcastOp>(as(getI32Type()), computed), sixteen = constant(16, bits);
    Value odd = create<arith::AndIOp>(create<arith::ShRUIOp>(bits, sixteen), constant(1, bits));
    Value rounded = create<arith::AddIOp>(create<arith::AddIOp>(bits, constant(0x7fff, bits)), odd);
    Value isNan = create<arith::CmpFOp>(arith::CmpFPredicate::UNO, computed, computed);
    Value result = select(isNan, create<arith::OrIOp>(bits, constant(0x400000, bits)), rounded);
    return create<arith::TruncIOp>(as(getI16Type()), create<arith::ShRUIOp>(result, sixteen));
  }
  if (element.isInteger(1))
    return create<arith::ExtUIOp>(as(getI8Type()), computed);
  return computed;
}

Value KernelBuilder::load(Value buffer, Value at, Lanes lanes, double other) {
  auto type = vectorOf(lanes.width, cast<MemRefType>(buffer.getType()).getElementType());
  Type element = elementOf(buffer);
  if (!lanes.isMasked())
    return fromStorage(create<vector::LoadOp>(type, buffer, at), element);
  // Only what is stored as it is computed with can be given a number where it is masked; the others are 0 in all bits.
  bool isPlain = type.getElementType() == computedOf(element);
  Value passThrough = create<arith::ConstantOp>(DenseElementsAttr::get(
      type, isa<FloatType>(type.getElementType())
                ? Attribute(getFloatAttr(type.getElementType(), isPlain ? other : 0))
                : Attribute(getIntegerAttr(type.getElementType(), isPlain ? int64_t(other) : 0))));
  Value loaded = fromStorage(create<vector::MaskedLoadOp>(type, buffer, at, laneMask(lanes), passThrough), element);
  return isPlain || other == 0 ? loaded : mask(loaded, lanes, other);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Lanes lanes) {
  value = toStorage(value, elementOf(buffer));
  if (lanes.isMasked())
    create<vector::MaskedStoreOp>(buffer, at, laneMask(lanes), value);
  else
    create<vector::StoreOp>(value, buffer, at);
}

Value KernelBuilder::lanesUpTo(Value last, Value at, Lanes lanes) {
  SmallVector<int32_t> numbers;
  for (int32_t i = 0; i < lanes.width; ++i)
    numbers.push_back(i);
  Value places = create<arith::ConstantOp>(
      DenseElementsAttr::get(vectorOf(lanes.width, getI32Type()), ArrayRef<int32_t>(numbers)));
  Value distance = create<arith::IndexCastOp>(getI32Type(), sub(last, at));
  return create<arith::CmpIOp>(arith::CmpIPredicate::sle, places, splat(distance, lanes.width));
}

void KernelBuilder::prefetch(Value buffer, Value at) {
  create<memref::PrefetchOp>(buffer, ValueRange{at}, /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

Value KernelBuilder::gather(Value buffer, Value at, Value offsets, Lanes lanes) {
  auto type = vectorOf(lanes.width, cast<MemRefType>(buffer.getType()).getElementType());
  Value zeros = create<arith::ConstantOp>(getZeroAttr(type));
  return fromStorage(create<vector::GatherOp>(type, buffer, ValueRange(at), offsets, laneMask(lanes), zeros),
                     elementOf(buffer));
}

Value KernelBuilder::loadScalar(Value buffer, Value at) {
  return fromStorage(create<memref::LoadOp>(buffer, at), elementOf(buffer));
}
void KernelBuilder::storeScalar(Value value, Value buffer, Value at) {
  create<memref::StoreOp>(toStorage(value, elementOf(buffer)), buffer, at);
}
Value KernelBuilder::loadIndex(Value buffer, Value at) {
  Value element = loadScalar(buffer, at);
  if (elementOf(buffer).isUnsignedInteger() || element.getType().isInteger(1))
    return create<arith::IndexCastUIOp>(getIndexType(), element);
  return create<arith::IndexCastOp>(getIndexType(), element);
}

Value KernelBuilder::splat(Value scalar, int64_t width) {
  return create<vector::SplatOp>(vectorOf(width, scalar.getType()), scalar);
}
Value KernelBuilder::splat(double number, int64_t width) {
  return create<arith::ConstantOp>(DenseElementsAttr::get(vectorOf(width), Attribute(getFloatAttr(real, number))));
}
Value KernelBuilder::constant(double value, Value like) {
  Type element = getElementTypeOrSelf(like.getType());
  TypedAttr attr;
  if (isa<FloatType>(element))
    attr = getFloatAttr(element, value);
  else
    // The largest unsigned numbers do not fit a signed one.
    attr = getIntegerAttr(
        element, APInt(element.getIntOrFloatBitWidth(), value < 0 ? uint64_t(int64_t(value)) : uint64_t(value)));
  if (auto type = dyn_cast<VectorType>(like.getType()))
    attr = DenseElementsAttr::get(type, Attribute(attr));
  return create<arith::ConstantOp>(attr);
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
Value KernelBuilder::log(Value a) { return vmath::log(*this, a); }

// The method of Cephes: e^x = 2^n · e^r with n = round(x / ln 2) and |r| <= ln 2 / 2, where ln 2 is subtracted in two
// parts and e^r is a polynomial of degree 6. 2^n is made of two factors, so that results up to the largest float are
// reached.
Value KernelBuilder::exp(Value a) {
  if (getElementTypeOrSelf(a.getType()).isF64())
    return vmath::exp(*this, a);
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
