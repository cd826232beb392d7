// SPDX-License-Identifier: Apache-2.0
// The loops of an op over the elements of tensors that differ in broadcasting or in the order of dimensions, with as
// few dimensions as possible, and the cut of their rows into tiles.
#pragma once

#include "codegen/emit/KernelBuilder.h"

#include "mlir/IR/BuiltinTypes.h"

namespace dg::codegen {

/// Row-major strides in elements.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// The strides with which a tensor of `shape` is read in a loop over `loopShape`, as numpy broadcasts: 0 where it is
/// repeated.
llvm::SmallVector<int64_t> broadcastStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> loopShape);

inline llvm::ArrayRef<int64_t> shapeOf(Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}
inline int64_t numElements(Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getNumElements();
}

struct LoopNest {
  llvm::SmallVector<int64_t> sizes;                      ///< at least one dimension
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< [tensor][dimension]

  /// Drops dimensions of size 1 and joins neighbours that every tensor walks through as one.
  static LoopNest collapse(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<llvm::SmallVector<int64_t>> strides);

  int64_t columns() const { return sizes.back(); }
  int64_t rows() const;
  int64_t columnStride(unsigned tensor) const { return strides[tensor].back(); }
  /// Where the row (all dimensions but the last, counted together) starts in the tensor.
  Value rowOffset(KernelBuilder &kernel, unsigned tensor, Value row) const;
};

/// Where element number `position` of the loops over `sizes` lies in a tensor with these strides.
Value offsetOf(KernelBuilder &kernel, Value position, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);

/// Elements that a tile of a plain elementwise kernel works on: some tens of microseconds.
inline constexpr int64_t elementsPerTile = 32768;

/// A number of tiles near this one, not less, that cuts a tensor where others cut theirs: a power of two, or a multiple
/// of 16. Threads take the same share of the tiles of every kernel, and so find what they wrote before.
int64_t alikeTiles(int64_t tiles);

/// Cuts rows × columns into tiles of about `tileElements`, sets the kernel's grid and loops over the rows of a tile.
/// The body gets the row and the columns of it that are the tile's, as KernelBuilder::loopVectors takes them.
void loopRowsOfTile(KernelBuilder &kernel, int64_t rows, int64_t columns, int64_t tileElements,
                    llvm::function_ref<void(Value row, Value from, Value to)> body);
/// The same without cutting rows.
void loopWholeRowsOfTile(KernelBuilder &kernel, int64_t rows, int64_t rowsPerTile,
                         llvm::function_ref<void(Value row)> body);

/// The general path for elements of any type: calls the body for each element of a tensor of `shape`, one at a time,
/// cut into tiles, with its place in row-major order and its index in each dimension. The last dimension is the
/// innermost loop, which LLVM vectorises where the body is simple.
void forEachElement(KernelBuilder &kernel, llvm::ArrayRef<int64_t> shape,
                    llvm::function_ref<void(Value place, llvm::ArrayRef<Value> index)> body);
/// Where the element at `index` lies in a tensor with these strides.
Value placeOf(KernelBuilder &kernel, llvm::ArrayRef<Value> index, llvm::ArrayRef<int64_t> strides);

} // namespace dg::codegen
