// SPDX-License-Identifier: Apache-2.0
// How the factors of a matrix product reach its sums: as they are, widened to f32 while they are packed (16-bit floats
// on any processor), or as pairs of bf16 that lie one after the other along the depth, of which one instruction
// (vdpbf16ps) adds both products to a sum in f32.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

class FactorReader {
public:
  /// `type` is what both factors are rounded to where it has 16 bits; null: they are multiplied as they are loaded.
  FactorReader(KernelBuilder &k, mlir::Type type, bool isPaired) : k(k), type(type), isPaired(isPaired) {}

  /// Elements of the depth that are one step of the product.
  int64_t perStep() const { return isPaired ? 2 : 1; }
  /// The type of a step in packed panels.
  mlir::Type packedType() const;
  Value zeros(int64_t width);

  /// Steps that follow each other along the depth, elements side by side.
  Value along(Value buffer, Value at, Lanes lanes);
  /// One step of several rows or columns that lie side by side; elements of the depth are `stride` apart.
  Value across(Value buffer, Value at, int64_t stride, Lanes lanes);
  /// One step of one row, as it lies.
  Value step(Value buffer, Value at);

  /// Of steps in a packed panel.
  Value loadPacked(Value panel, Value at, Lanes lanes);
  void storePacked(Value value, Value panel, Value at);

  /// sum + step · row, with one step for all lanes.
  Value multiplyAdd(Value step, Value row, Value sum);
  /// Lanes that multiplyAdd can have at least.
  int64_t fewestLanes() const { return isPaired ? 4 : 1; }

private:
  bool isRounded(Value buffer);
  /// Bits of bf16 elements in the lower half of i32.
  Value halfBits(Value buffer, Value at, Lanes lanes);

  KernelBuilder &k;
  mlir::Type type;
  bool isPaired;
};

} // namespace dg::codegen
