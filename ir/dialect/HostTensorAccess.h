// SPDX-License-Identifier: Apache-2.0
// Walking the row-major tensors of the reference evaluations. Plain on purpose: these are the definitions of the ops.
#pragma once

#include "ir/dialect/OpContract.h"

#include "llvm/ADT/ArrayRef.h"

namespace dg::ir {

/// Distance between neighbours along each dimension, in elements.
inline llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// Strides with which a tensor of shape `from` is read at the indices of `to`, as numpy broadcasts: 0 along repeated
/// dimensions.
inline llvm::SmallVector<int64_t> broadcastStrides(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<int64_t> strides(to.size(), 0), own = stridesOf(from);
  size_t offset = to.size() - from.size();
  for (size_t dim = 0; dim < from.size(); ++dim)
    strides[offset + dim] = from[dim] == 1 ? 0 : own[dim];
  return strides;
}

/// Calls `visit(offsets)` for each index of `shape`, in row-major order; `offsets[i]` is the place of the index in a
/// tensor with strides `strides[i]`.
template <typename Visit>
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::SmallVector<int64_t>> strides, Visit visit) {
  llvm::SmallVector<int64_t> index(shape.size(), 0), offsets(strides.size(), 0);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    visit(llvm::ArrayRef<int64_t>(offsets));
    for (size_t dim = shape.size(); dim-- > 0;) {
      bool wraps = ++index[dim] == shape[dim];
      for (size_t tensor = 0; tensor < strides.size(); ++tensor)
        offsets[tensor] += wraps ? -strides[tensor][dim] * (shape[dim] - 1) : strides[tensor][dim];
      if (!wraps)
        break;
      index[dim] = 0;
    }
  }
}

/// The size of the last dimension: rows of it lie one after the other.
inline int64_t rowSize(const HostTensor &tensor) { return tensor.shape.back(); }
inline int64_t numRows(const HostTensor &tensor) {
  return tensor.numElements() / std::max<int64_t>(rowSize(tensor), 1);
}

} // namespace dg::ir
