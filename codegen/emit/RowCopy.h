// SPDX-License-Identifier: Apache-2.0
// Rows of any element type, copied or filled by vectors.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

/// Copies elements [from, to) of a row of `columns`, as KernelBuilder::loopVectors takes them.
void copyRow(KernelBuilder &kernel, Value source, Value sourceAt, Value target, Value targetAt, Value from, Value to,
             int64_t columns);
/// Copies the whole row.
inline void copyRow(KernelBuilder &kernel, Value source, Value sourceAt, Value target, Value targetAt,
                    int64_t columns) {
  copyRow(kernel, source, sourceAt, target, targetAt, kernel.index(0), kernel.index(columns), columns);
}
/// Stores a scalar in each of `columns` elements.
void fillRow(KernelBuilder &kernel, Value scalar, Value target, Value targetAt, int64_t columns);

/// A number of the type that elements of the buffer are computed with.
Value numberFor(KernelBuilder &kernel, Value buffer, double number);

} // namespace dg::codegen
