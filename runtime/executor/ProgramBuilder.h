// SPDX-License-Identifier: Apache-2.0
// From the plan to what a step runs: resolves pointers, kernels, peers and tags for one rank, once.
#pragma once

#include "runtime/device/host/KernelLibrary.h"
#include "runtime/executor/Arena.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/transport/Transport.h"

namespace dg {

/// What the preparation of every program of a rank needs.
struct ExecutorRank {
  const plan::Plan &plan;
  plan::Coordinates at;
  int64_t rank;
  const Arena &arena;
  const KernelLibrary &library;
  Transport *transport; ///< may be null
  Communications &communications;
  uint32_t threads;       ///< that run it together
  double leastSharedWork; ///< in nanoseconds: of a segment that they run together
};

/// Prepares plan.programs[program] for the context's rank. Fails on missing kernels, on communications without
/// transport and on tasks that do not fit together; never writes to the arena.
Result<PreparedProgram> prepareProgram(const ExecutorRank &context, size_t program);

} // namespace dg
