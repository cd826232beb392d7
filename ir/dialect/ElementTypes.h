// SPDX-License-Identifier: Apache-2.0
// The element types that tensors have, and what their elements can hold: f64 f32 f16 bf16, i1 (a byte, 0 or 1), i8 i16
// i32 i64 (signed, though MLIR calls them signless), ui8 ui16 ui32 ui64.
#pragma once

#include "ir/dialect/OpContract.h"

#include "mlir/IR/BuiltinTypes.h"

namespace dg::ir {

/// What elementTypeNames lists.
bool isElementType(mlir::Type type);
inline constexpr llvm::StringLiteral elementTypeNames =
    "f32, f64, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 and ui64";

inline bool isBool(mlir::Type type) { return type.isInteger(1); }
/// Of an integer type: bools and the ui types have no sign.
inline bool isUnsigned(mlir::Type type) { return type.isUnsignedInteger() || isBool(type); }
/// The 16-bit floats, in which much is stored and nothing is summed.
inline bool isHalf(mlir::Type type) { return type.isF16() || type.isBF16(); }
/// What is computed with for elements of this type: f32 for the 16-bit floats.
mlir::Type arithmeticType(mlir::Type type);
/// Bytes of one element; a bool takes one.
int64_t elementBytes(mlir::Type type);

/// The smallest and the largest number of the type: infinities of floats. 2^63 - 1 and 2^64 - 1, which are no doubles,
/// are rounded up.
double smallestElement(mlir::Type type);
double largestElement(mlir::Type type);

/// What an element of this type holds when `value` is stored in it: floats round to nearest even, integers drop their
/// fraction and wrap, bools are value != 0.
double storedElement(double value, mlir::Type type);
/// The same for every element of an integer tensor; floats stay.
void wrapIntegers(mlir::RankedTensorType type, HostTensor &tensor);

} // namespace dg::ir
