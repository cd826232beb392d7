// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/RandomKernels.h"

#include "codegen/emit/ElementArithmetic.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/elementwise/RandomOps.h"

using namespace mlir;

namespace dg::codegen {

/// Words stay in the low halves of 64-bit lanes: a product of two is whole there, and its halves are a shift and a
/// mask.
std::array<Value, 4> emitPhilox(KernelBuilder &k, Value key, Value stream, Value counter) {
  Type type = counter.getType();
  auto number = [&](int64_t value) -> Value {
    TypedAttr attribute = k.getI64IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, value);
    return k.create<arith::ConstantOp>(attribute);
  };
  Value low = number(0xFFFFFFFF), half = number(32);
  auto lowOf = [&](Value value) -> Value { return k.create<arith::AndIOp>(value, low); };
  auto highOf = [&](Value value) -> Value { return k.create<arith::ShRUIOp>(value, half); };
  auto mix = [&](Value a, Value b, Value c) -> Value {
    return k.create<arith::XOrIOp>(k.create<arith::XOrIOp>(a, b), c);
  };
  Value c0 = lowOf(counter), c1 = highOf(counter), c2 = lowOf(stream), c3 = highOf(stream), k0 = lowOf(key),
        k1 = highOf(key);
  for (int round = 0; round < 10; ++round) {
    Value p0 = k.create<arith::MulIOp>(c0, number(0xD2511F53)), p1 = k.create<arith::MulIOp>(c2, number(0xCD9E8D57));
    c0 = mix(highOf(p1), c1, k0);
    c2 = mix(highOf(p0), c3, k1);
    c1 = lowOf(p1);
    c3 = lowOf(p0);
    k0 = lowOf(k.create<arith::AddIOp>(k0, number(0x9E3779B9)));
    k1 = lowOf(k.create<arith::AddIOp>(k1, number(0xBB67AE85)));
  }
  return {c0, c1, c2, c3};
}

Value emitRandomBits(KernelBuilder &k, Operation *op, ValueRange v) {
  auto bits = cast<ir::RandomBitsOp>(op);
  Value key = v[0], counter = v[1];
  Value word = emitPhilox(k, key, k.constant(0, counter), counter)[bits.getWord()];
  Value top = k.create<arith::ShRUIOp>(word, k.constant(8, word)); // 24 bits are exact in f32
  Value real = convertElement(k, k.getI64Type(), k.real, top);
  return convertElement(k, k.real, bits.getTo(), k.scale(real, 0x1p-24));
}

namespace {
void emitRandomKey(KernelBuilder &k, ir::RandomKeyOp op) {
  auto number = [&](int64_t value) -> Value { return k.create<arith::ConstantOp>(k.getI64IntegerAttr(value)); };
  auto words = emitPhilox(k, k.seed(), number(int64_t(op.getStream())), k.step());
  Value top = k.create<arith::ShLIOp>(k.create<arith::AndIOp>(words[1], number(0x1FFFFF)), number(32));
  k.storeScalar(k.create<arith::OrIOp>(top, words[0]), k.buffer(0), k.index(0));
}
} // namespace

void addRandomKernels(KernelTable &table) { table.add(emitRandomKey); }

} // namespace dg::codegen
