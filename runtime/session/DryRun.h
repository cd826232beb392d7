// SPDX-License-Identifier: Apache-2.0
// dgrun --dry-run: every pair of ranks exchanges messages, and rank 0 prints over which transport and addresses, and
// how long they took. Nothing is trained.
#pragma once

#include "runtime/launch/link/RankContext.h"
#include "runtime/transport/Transport.h"

#include <chrono>

namespace dg::session {

/// Called by every rank. `transport` is null for a job of one rank. Fails when a pair does not answer before the
/// time-out, and names it.
Status runDry(RankContext &context, Transport *transport, std::chrono::milliseconds timeout, bool isJson);

} // namespace dg::session
