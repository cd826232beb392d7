// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/Places.h"

#include "runtime/abi/KernelAbi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace dg::codegen {

static Value atOffset(KernelBuilder &k, Value base, size_t offset) {
  return k.create<LLVM::GEPOp>(base.getType(), k.getI8Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}
static Value loadFrom(KernelBuilder &k, Type type, Value base, size_t offset) {
  return k.create<LLVM::LoadOp>(type, atOffset(k, base, offset));
}
static void storeTo(KernelBuilder &k, Value value, Value base, size_t offset) {
  k.create<LLVM::StoreOp>(value, atOffset(k, base, offset));
}
static Value number(KernelBuilder &k, int64_t value) { return k.create<arith::ConstantOp>(k.getI64IntegerAttr(value)); }
/// Scalars and buffers of the task, one pointer after the other.
static Value callOf(KernelBuilder &k) { return k.buffer(k.numBuffers()); }

/// Whoever makes the report's first field other than 0 writes the rest.
static void report(KernelBuilder &k, unsigned operand, Value element, Value index, int64_t places) {
  Value scalars = loadFrom(k, callOf(k).getType(), callOf(k), 0), task = loadFrom(k, k.getI64Type(), callOf(k), 8);
  Value fault = loadFrom(k, callOf(k).getType(), scalars, offsetof(dg_scalars, fault));
  Value swapped = k.create<LLVM::AtomicCmpXchgOp>(fault, number(k, 0), task, LLVM::AtomicOrdering::acq_rel,
                                                  LLVM::AtomicOrdering::monotonic);
  k.ifThen(k.create<LLVM::ExtractValueOp>(swapped, ArrayRef<int64_t>{1}), [&] {
    auto wide = [&](Value value) -> Value { return k.create<arith::IndexCastOp>(k.getI64Type(), value); };
    storeTo(k, number(k, operand), fault, offsetof(dg_index_fault, operand));
    storeTo(k, wide(element), fault, offsetof(dg_index_fault, element));
    storeTo(k, wide(index), fault, offsetof(dg_index_fault, index));
    storeTo(k, number(k, places), fault, offsetof(dg_index_fault, places));
  });
}

Value loadPlace(KernelBuilder &k, Value indices, Value at, int64_t count, bool countsFromEnd) {
  Value index = k.loadIndex(indices, at), place = index;
  if (countsFromEnd)
    place = k.select(k.isLess(index, k.index(0)), k.add(index, count), index);
  Value isOutside = k.create<arith::CmpIOp>(arith::CmpIPredicate::uge, place, k.index(count));
  k.ifThen(isOutside,
           [&] { report(k, cast<BlockArgument>(indices).getArgNumber(), at, index, countsFromEnd ? -count : count); });
  return k.max(k.index(0), k.min(place, k.index(count - 1)));
}

Value callOfInner(KernelBuilder &k) {
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(cast<BlockArgument>(callOf(k)).getOwner());
  Value inner = k.create<LLVM::AllocaOp>(callOf(k).getType(), k.getI64Type(), number(k, 2));
  storeTo(k, loadFrom(k, k.getI64Type(), callOf(k), 0), inner, 0);
  storeTo(k, k.create<arith::OrIOp>(loadFrom(k, k.getI64Type(), callOf(k), 8), number(k, 1)), inner, 8);
  return inner;
}

} // namespace dg::codegen
