// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor in their three forms: MLIR's attribute (exact), the reference executor's doubles, and the bytes
// that the runtime maps.
#pragma once

#include "ir/dialect/OpContract.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace dg::ir {

/// The elements as doubles. Integers beyond 2^53 are rounded.
HostTensor hostTensorOf(mlir::DenseElementsAttr elements);
/// The attribute of a tensor of `type`, which has the tensor's shape: floats are rounded to nearest, integers cut off
/// towards zero and held within the range of their type, so that "as far as there is" (2^63-1) survives.
mlir::DenseElementsAttr elementsOf(const HostTensor &tensor, mlir::RankedTensorType type);

/// Row-major bytes, little-endian; one byte for a boolean.
std::string bytesOf(mlir::DenseElementsAttr elements);
/// The attribute of such bytes, of which there must be as many as the type asks for. Any byte but 0 is true.
mlir::DenseElementsAttr elementsOfBytes(llvm::ArrayRef<char> bytes, mlir::RankedTensorType type);

} // namespace dg::ir
