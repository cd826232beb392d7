// SPDX-License-Identifier: Apache-2.0
// Cutting tensors into blocks along a dimension and joining them again, and dealing a step's samples.
#pragma once

#include "ir/dialect/OpContract.h"

namespace dg::ir {

/// Elements [start, start + size) along `dim`; zeros where the block reaches past the end.
HostTensor cutBlock(const HostTensor &tensor, int64_t dim, int64_t start, int64_t size);

/// Writes a block at `start` along `dim`; what reaches past the end of `into` is dropped.
void pasteBlock(HostTensor &into, const HostTensor &block, int64_t dim, int64_t start);

/// A run of consecutive samples.
struct SampleRange {
  int64_t start = 0, count = 0;
};

/// Part `index` of `parts` contiguous parts of a range, whose sizes differ by at most one, the first ones larger.
SampleRange partOf(SampleRange whole, int64_t parts, int64_t index);

} // namespace dg::ir
