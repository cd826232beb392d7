// SPDX-License-Identifier: Apache-2.0
// Vectors of elements that are not side by side in memory.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

/// A vector of the elements at, at + stride, at + 2 stride, …: no element beyond the last active lane is read.
Value loadStrided(KernelBuilder &kernel, Value buffer, Value at, Lanes lanes, int64_t stride);

/// Stores even[0], odd[0], even[1], odd[1], …: two elements for each active lane.
void storePairs(KernelBuilder &kernel, Value even, Value odd, Value buffer, Value at, Lanes lanes);

} // namespace dg::codegen
