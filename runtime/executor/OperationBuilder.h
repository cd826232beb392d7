// SPDX-License-Identifier: Apache-2.0
// Makes the prepared communications of one program: peers from the mesh, tags from program and channel, block shapes
// from the values.
#pragma once

#include "runtime/executor/ProgramBuilder.h"

#include <vector>

namespace dg {

/// The ranks of a collective's axis, ordered by coordinate.
Group groupOf(const ExecutorRank &context, plan::Axis axis);

/// The operations of one communication task: one for each of `rows` buffers of a send, otherwise one. Fails when
/// there is no transport, when the plan names no peer, or when shards do not make up the whole.
Result<std::vector<Operation *>> makeOperations(const ExecutorRank &context, size_t program, plan::TaskId id,
                                                uint32_t rows);

} // namespace dg
