// SPDX-License-Identifier: Apache-2.0
// From the plan to what a step runs: resolves pointers, kernels, peers and tags for one rank, once.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/executor/Communications.h"
#include "runtime/executor/PreparedProgram.h"
#include "runtime/executor/Staging.h"
#include "runtime/transport/Transport.h"

namespace dg {

/// What the preparation of every program of a rank needs.
struct ExecutorRank {
  const plan::Plan &plan;
  plan::Coordinates at;
  int64_t rank;
  Device &device;
  const Staging &staging;
  Transport *transport; ///< may be null
  Communications &communications;
  bool isolatesTasks; ///< each task is a segment of its own, so that something can be done between two
};

/// Prepares plan.programs[program] for the context's rank. Fails on missing kernels, on communications without
/// transport and on tasks that do not fit together; never writes to a value.
Result<PreparedProgram> prepareProgram(const ExecutorRank &context, size_t program);

} // namespace dg
