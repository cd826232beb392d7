// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/reference/TensorBlocks.h"

#include <algorithm>

namespace dg::ir {

/// Copies the part of `count` elements along `dim` between two tensors that agree in every other dimension.
static void copyAlong(const HostTensor &from, int64_t fromStart, HostTensor &to, int64_t toStart, int64_t dim,
                      int64_t count) {
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < from.shape.size(); ++i)
    (int64_t(i) < dim ? outer : inner) *= int64_t(i) == dim ? 1 : from.shape[i];
  for (int64_t i = 0; i < outer; ++i)
    std::copy_n(from.data.begin() + (i * from.shape[dim] + fromStart) * inner, count * inner,
                to.data.begin() + (i * to.shape[dim] + toStart) * inner);
}

HostTensor cutBlock(const HostTensor &tensor, int64_t dim, int64_t start, int64_t size) {
  HostTensor block{tensor.shape, {}};
  block.shape[dim] = size;
  block.data.resize(block.numElements());
  int64_t count = std::clamp<int64_t>(tensor.shape[dim] - start, 0, size);
  if (count > 0)
    copyAlong(tensor, start, block, 0, dim, count);
  return block;
}

void pasteBlock(HostTensor &into, const HostTensor &block, int64_t dim, int64_t start) {
  int64_t count = std::clamp<int64_t>(into.shape[dim] - start, 0, block.shape[dim]);
  if (count > 0)
    copyAlong(block, 0, into, start, dim, count);
}

SampleRange partOf(SampleRange whole, int64_t parts, int64_t index) {
  int64_t size = whole.count / parts, numLarger = whole.count % parts;
  return {whole.start + index * size + std::min(index, numLarger), size + (index < numLarger ? 1 : 0)};
}

} // namespace dg::ir
