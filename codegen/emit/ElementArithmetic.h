// SPDX-License-Identifier: Apache-2.0
// Arithmetic on elements of any type, scalars or vectors: what the ops on floats and on signed and unsigned integers
// and bools have in common. `type` is the element type of the tensors; values are what KernelBuilder's loads give.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

enum class Comparison { eq, ne, lt, le, gt, ge };

Value addElements(KernelBuilder &kernel, Value a, Value b);
Value subElements(KernelBuilder &kernel, Value a, Value b);
Value mulElements(KernelBuilder &kernel, Value a, Value b);
/// Integers are divided toward zero; x / 0 is 0, and the smallest number divided by -1 is itself.
Value divElements(KernelBuilder &kernel, mlir::Type type, Value a, Value b);
/// Of the smaller and larger numbers NaN is both.
Value minElements(KernelBuilder &kernel, mlir::Type type, Value a, Value b);
Value maxElements(KernelBuilder &kernel, mlir::Type type, Value a, Value b);
/// An i1, or a vector of them. NaN is unequal to all, itself included.
Value compareElements(KernelBuilder &kernel, mlir::Type type, Comparison comparison, Value a, Value b);
/// An element of type `from` as one of type `to`, as ONNX casts: floats are cut toward zero and held at the ends of the
/// integer type (NaN is 0), integers wrap, a bool is x != 0, f16 and bf16 are rounded to nearest even.
Value convertElement(KernelBuilder &kernel, mlir::Type from, mlir::Type to, Value a);
/// `value` as an element of the type, in the shape of `like` (a scalar, or a vector of as many); beyond the ends of the
/// type it is the end.
Value elementConstant(KernelBuilder &kernel, mlir::Type type, double value, Value like);

} // namespace dg::codegen
