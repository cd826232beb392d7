// SPDX-License-Identifier: Apache-2.0
// What emitters of kernels write with: a builder inside the kernel's function, where every buffer is a flat memref of
// static size, with short names for index arithmetic, loops, vectors with a static tail, and floating-point ops.
//
// A buffer has the element type of its tensor; memory holds what storageOf says. Loads give, and stores take, what is
// computed with: f32 for f16 and bf16, an i1 for a bool, a signless integer for an unsigned one. An emitter that is
// written with loads, stores and floating-point ops therefore serves f32, f64, f16 and bf16 alike.
#pragma once

#include "codegen/cpu/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dg::codegen {

using mlir::Value;
using mlir::ValueRange;

/// A vector whose first `active` elements exist; the others are masked. `active` is 1 to `width`.
struct Lanes {
  int64_t width;
  int64_t active;
  bool isMasked() const { return active < width; }
};

/// What memory holds for an element: bf16 is 16 bits, a bool a byte, an unsigned integer a signless one.
mlir::Type storageOf(mlir::Type element);
/// What is computed with for an element: f32 for f16 and bf16, a signless integer for an unsigned one.
mlir::Type computedOf(mlir::Type element);

class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Body = llvm::function_ref<void(Value)>;
  using VectorBody = llvm::function_ref<void(Value, Lanes)>;
  using Values = llvm::SmallVector<Value>;
  using CarryingBody = llvm::function_ref<Values(Value, ValueRange)>;

  /// Writes into the empty function `function`, whose arguments are the buffers, then the call (two pointers: to the
  /// scalars and to the buffers), step, seed and tile; `elements` are the element types of the buffers' tensors.
  KernelBuilder(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Type> elements, const Target &target);

  /// The type of numbers in this kernel: f64 where a buffer has it, else f32.
  const mlir::FloatType real;
  /// With the bytes of `real`.
  const Target target;
  /// Elements of one full vector of `real`.
  const int64_t lanes;

  Value buffer(unsigned index) { return function.getArgument(index); }
  unsigned numBuffers() { return function.getNumArguments() - 4; }
  /// The element type of a buffer's tensor; of a workspace what it was made of.
  mlir::Type elementOf(Value buffer);
  /// As a number of type `real`.
  Value lr();
  Value step() { return function.getArgument(function.getNumArguments() - 3); }
  Value seed() { return function.getArgument(function.getNumArguments() - 2); }
  Value tile() { return function.getArgument(function.getNumArguments() - 1); }

  /// The number of tiles in the grid; 1 unless set.
  void setTiles(int64_t tiles) { numTiles = tiles; }
  int64_t tiles() const { return numTiles; }

  /// Workspace of this call on the stack of the thread, aligned to a cache line. It stays hot from tile to tile; a
  /// kernel that takes more than mostStackBytes together is refused. Elements are of type `real` unless given.
  Value stack(int64_t elements, mlir::Type element = {});
  int64_t stackBytes() const { return numStackBytes; }
  static constexpr int64_t mostStackBytes = 1 << 20;

  // Indices.
  Value index(int64_t value) { return create<mlir::arith::ConstantIndexOp>(value); }
  Value add(Value a, Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
  Value sub(Value a, Value b) { return createOrFold<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : createOrFold<mlir::arith::MulIOp>(a, index(b)); }
  Value mul(Value a, Value b) { return createOrFold<mlir::arith::MulIOp>(a, b); }
  /// Of indices that are not negative.
  Value div(Value a, int64_t b) { return b == 1 ? a : createOrFold<mlir::arith::DivUIOp>(a, index(b)); }
  Value mod(Value a, int64_t b) { return b == 1 ? index(0) : createOrFold<mlir::arith::RemUIOp>(a, index(b)); }
  Value min(Value a, Value b) { return createOrFold<mlir::arith::MinSIOp>(a, b); }
  Value max(Value a, Value b) { return createOrFold<mlir::arith::MaxSIOp>(a, b); }
  Value isEqual(Value a, Value b) { return create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::eq, a, b); }
  Value isLess(Value a, Value b) { return create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::slt, a, b); }

  // Control.
  void loop(Value from, Value to, int64_t step, Body body);
  void loop(int64_t from, int64_t to, int64_t step, Body body) { loop(index(from), index(to), step, body); }
  Values loop(Value from, Value to, int64_t step, ValueRange carried, CarryingBody body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  Values ifElse(Value condition, mlir::TypeRange types, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

  /// Full vectors over [0, count), then one with the rest.
  void loopVectors(int64_t count, VectorBody body);
  /// The same over [from, to), a part of [0, count): `from` is a multiple of the lanes, and `to` too unless it is
  /// `count`.
  void loopVectors(Value from, Value to, int64_t count, VectorBody body);
  enum class Fold { sum, max };
  /// Folds the elements of [0, count), or of [0, to) with `to` as for loopVectors, into one number. `element` gives a
  /// vector of them; its masked lanes do not count. Four accumulators run side by side; the order is fixed.
  Value fold(Fold kind, int64_t count, llvm::function_ref<Value(Value, Lanes)> element) {
    return fold(kind, index(count), count, element);
  }
  Value fold(Fold kind, Value to, int64_t count, llvm::function_ref<Value(Value, Lanes)> element);

  // Memory. A vector of width 1 is a vector too.
  mlir::VectorType vectorOf(int64_t width, mlir::Type element);
  mlir::VectorType vectorOf(int64_t width) { return vectorOf(width, real); }
  /// Masked lanes read `other`, a number that every type of element has.
  Value load(Value buffer, Value at, Lanes lanes, double other = 0);
  void store(Value value, Value buffer, Value at, Lanes lanes);
  /// Advice to bring the cache line of this element into the second-level cache. The place may lie outside the buffer.
  void prefetch(Value buffer, Value at);
  /// The elements at `at` + `offsets` (a vector of i32); masked lanes read 0.
  Value gather(Value buffer, Value at, Value offsets, Lanes lanes);
  Value loadScalar(Value buffer, Value at);
  void storeScalar(Value value, Value buffer, Value at);
  /// An integer element as an index.
  Value loadIndex(Value buffer, Value at);
  /// One element in every lane.
  Value loadSplat(Value buffer, Value at, Lanes lanes) { return splat(loadScalar(buffer, at), lanes.width); }
  Value splat(Value scalar, int64_t width);
  Value splat(double number, int64_t width);
  Value number(double value) { return create<mlir::arith::ConstantOp>(getFloatAttr(real, value)); }
  /// `value` where the lanes are active, `other` elsewhere.
  Value mask(Value value, Lanes lanes, double other);
  Value laneMask(Lanes lanes);
  /// True in the lanes at or before place `last` of a vector that starts at place `at`.
  Value lanesUpTo(Value last, Value at, Lanes lanes);

  // Floating point, scalars or vectors of one type; fused multiply-add is allowed.
  Value fadd(Value a, Value b);
  Value fsub(Value a, Value b);
  Value fmul(Value a, Value b);
  Value fdiv(Value a, Value b);
  Value fma(Value a, Value b, Value c);
  /// A constant of the type of `like`, which may be one of integers.
  Value constant(double value, Value like);
  Value scale(Value a, double factor) { return fmul(a, constant(factor, a)); }
  /// The larger; NaN where `b` is NaN.
  Value fmax(Value a, Value b);
  Value greater(Value a, Value b) { return create<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OGT, a, b); }
  Value select(Value condition, Value a, Value b) { return create<mlir::arith::SelectOp>(condition, a, b); }
  Value sqrt(Value a);
  /// A number of type `real` as f64, in which long sums keep their digits, and back.
  Value toDouble(Value a) { return real.isF64() ? a : create<mlir::arith::ExtFOp>(getF64Type(), a).getResult(); }
  Value fromDouble(Value a) { return real.isF64() ? a : create<mlir::arith::TruncFOp>(real, a).getResult(); }
  /// Relative error below 2e-7; 0 below -87.3, infinity above 88.7.
  Value exp(Value a);
  /// Relative error below 2e-7.
  Value log(Value a);
  /// The sum, or the largest, of a vector's lanes, in a fixed order.
  Value sumLanes(Value vector);
  Value maxLanes(Value vector);

private:
  mlir::func::FuncOp function;
  /// Between what memory holds for an element and what is computed with.
  Value fromStorage(Value stored, mlir::Type element);
  Value toStorage(Value computed, mlir::Type element);

  llvm::SmallVector<mlir::Type> elements;
  int64_t numTiles = 1;
  int64_t numStackBytes = 0;
};

} // namespace dg::codegen
