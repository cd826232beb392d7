// SPDX-License-Identifier: Apache-2.0
// Places in tables that integers name. Apart from KernelBuilder.h because few kernels have them.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

/// The place in a table of `count` that element `at` of the buffer `indices` names. One outside is reported (see
/// dg_index_fault) and the nearest inside returned: wrong data never reaches memory outside the arena.
mlir::Value loadPlace(KernelBuilder &k, mlir::Value indices, mlir::Value at, int64_t count, bool countsFromEnd = false);

/// What a kernel of an inner graph gets as its call: its own buffers are not those of the task.
mlir::Value callOfInner(KernelBuilder &k);

} // namespace dg::codegen
