// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 as code on vectors: the same words as runtime/support/CounterRandom.h.
#pragma once

#include "codegen/emit/KernelBuilder.h"

#include <array>

namespace dg::codegen {

/// The four words for (key, stream, counter), each in the low half of an i64; operands are i64 scalars or vectors of
/// one type.
std::array<Value, 4> emitPhilox(KernelBuilder &kernel, Value key, Value stream, Value counter);

/// dg.random_bits on vectors of its operands' elements.
Value emitRandomBits(KernelBuilder &kernel, mlir::Operation *op, ValueRange operands);

} // namespace dg::codegen
