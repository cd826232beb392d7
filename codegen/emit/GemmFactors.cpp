// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/GemmFactors.h"

#include "codegen/emit/ElementArithmetic.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dg::codegen {

Type FactorReader::packedType() const { return isPaired ? Type(k.getI32Type()) : Type(k.real); }

Value FactorReader::zeros(int64_t width) {
  return k.create<arith::ConstantOp>(k.getZeroAttr(k.vectorOf(width, packedType())));
}

/// An f32 operand of a product in 16 bits.
bool FactorReader::isRounded(Value buffer) { return type && k.elementOf(buffer) != type; }

Value FactorReader::halfBits(Value buffer, Value at, Lanes lanes) {
  Type bits = k.vectorOf(lanes.width, k.getI32Type());
  if (isRounded(buffer)) {
    Value rounded = convertElement(k, k.getF32Type(), type, k.load(buffer, at, lanes));
    Value word = k.create<arith::BitcastOp>(bits, rounded);
    return k.create<arith::ShRUIOp>(word, k.constant(16, word));
  }
  auto stored = k.vectorOf(lanes.width, k.getI16Type());
  Value loaded = lanes.isMasked()
                     ? Value(k.create<vector::MaskedLoadOp>(stored, buffer, at, k.laneMask(lanes),
                                                            k.create<arith::ConstantOp>(k.getZeroAttr(stored))))
                     : Value(k.create<vector::LoadOp>(stored, buffer, at));
  return k.create<arith::ExtUIOp>(bits, loaded);
}

Value FactorReader::along(Value buffer, Value at, Lanes lanes) {
  if (!isPaired) {
    Value loaded = k.load(buffer, at, lanes);
    return isRounded(buffer) ? convertElement(k, k.getF32Type(), type, loaded) : loaded;
  }
  Lanes elements = {2 * lanes.width, 2 * lanes.active};
  auto stored = k.vectorOf(elements.width, k.getI16Type());
  Value loaded;
  if (isRounded(buffer))
    loaded = k.create<arith::TruncIOp>(stored, halfBits(buffer, at, elements));
  else if (elements.isMasked())
    loaded = k.create<vector::MaskedLoadOp>(stored, buffer, at, k.laneMask(elements),
                                            k.create<arith::ConstantOp>(k.getZeroAttr(stored)));
  else
    loaded = k.create<vector::LoadOp>(stored, buffer, at);
  return k.create<vector::BitCastOp>(k.vectorOf(lanes.width, k.getI32Type()), loaded);
}

Value FactorReader::across(Value buffer, Value at, int64_t stride, Lanes lanes) {
  if (!isPaired)
    return along(buffer, at, lanes);
  Value first = halfBits(buffer, at, lanes), second = halfBits(buffer, k.add(at, stride), lanes);
  return k.create<arith::OrIOp>(first, k.create<arith::ShLIOp>(second, k.constant(16, second)));
}

Value FactorReader::step(Value buffer, Value at) {
  if (cast<MemRefType>(buffer.getType()).getElementType() == packedType())
    return k.create<memref::LoadOp>(buffer, at);
  return k.create<vector::ExtractOp>(along(buffer, at, {1, 1}), int64_t(0));
}

Value FactorReader::loadPacked(Value panel, Value at, Lanes lanes) {
  auto stored = k.vectorOf(lanes.width, packedType());
  if (!lanes.isMasked())
    return k.create<vector::LoadOp>(stored, panel, at);
  return k.create<vector::MaskedLoadOp>(stored, panel, at, k.laneMask(lanes), zeros(lanes.width));
}

void FactorReader::storePacked(Value value, Value panel, Value at) { k.create<vector::StoreOp>(value, panel, at); }

Value FactorReader::multiplyAdd(Value step, Value row, Value sum) {
  auto type = cast<VectorType>(row.getType());
  int64_t width = type.getNumElements();
  Value steps = k.splat(step, width);
  if (!isPaired)
    return k.fma(steps, row, sum);
  auto pairs = k.vectorOf(2 * width, k.getBF16Type());
  Value left = k.create<vector::BitCastOp>(pairs, steps), right = k.create<vector::BitCastOp>(pairs, row);
  std::string name = "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(32 * width);
  return k
      .create<LLVM::CallIntrinsicOp>(TypeRange{sum.getType()}, k.getStringAttr(name), ValueRange{sum, left, right},
                                     LLVM::FastmathFlagsAttr())
      .getResult(0);
}

} // namespace dg::codegen
