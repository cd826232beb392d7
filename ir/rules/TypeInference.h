// SPDX-License-Identifier: Apache-2.0
// What the families share when they infer result types: operands that are not deduced yet, `?` dimensions,
// and broadcasting.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {

/// True, with `numResults` undeduced results, where some operand is not deduced yet: then there is nothing to check.
inline bool deferInference(mlir::MLIRContext *context, mlir::ValueRange operands, unsigned numResults,
                           llvm::SmallVectorImpl<mlir::Type> &inferred) {
  if (llvm::none_of(operands.getTypes(), isAny))
    return false;
  inferred.assign(numResults, AnyType::get(context));
  return true;
}

/// Adds the types that an op infers to `inferred`.
inline mlir::LogicalResult store(mlir::FailureOr<mlir::Type> type, llvm::SmallVectorImpl<mlir::Type> &inferred) {
  if (succeeded(type))
    inferred.push_back(*type);
  return type;
}
inline mlir::LogicalResult store(const mlir::FailureOr<llvm::SmallVector<mlir::Type>> &types,
                                 llvm::SmallVectorImpl<mlir::Type> &inferred) {
  if (succeeded(types))
    llvm::append_range(inferred, *types);
  return types;
}

/// False where two sizes differ for certain; `?` may be any size.
inline bool mayBeEqual(int64_t a, int64_t b) {
  return a == b || mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b);
}

/// The same for shapes.
inline bool mayBeEqual(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto sizes) { return mayBeEqual(std::get<0>(sizes), std::get<1>(sizes)); });
}

/// The shape of numpy's broadcast of two shapes; nothing where they do not fit.
inline std::optional<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  llvm::SmallVector<int64_t> shape(a);
  size_t offset = a.size() - b.size();
  for (size_t dim = 0; dim < b.size(); ++dim) {
    int64_t &size = shape[offset + dim];
    if (!mayBeEqual(size, b[dim]) && size != 1 && b[dim] != 1)
      return std::nullopt;
    if (size == 1 || (mlir::ShapedType::isDynamic(size) && b[dim] != 1))
      size = b[dim];
  }
  return shape;
}

} // namespace dg::ir
