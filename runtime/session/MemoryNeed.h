// SPDX-License-Identifier: Apache-2.0
// Whether the arenas of a plan fit the memory of this host, asked before ranks are started and not at a page that the
// system cannot give.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>

namespace dg::session {

/// Bytes that so many ranks of the plan take together, at least: which of them come to this host is not known before
/// all launchers have met. What cannot be counted is UINT64_MAX.
uint64_t leastMemoryBytes(const plan::Plan &plan, int64_t numRanks);

/// Fails (usage), with both numbers and what to do, where the ranks of this host need more than it has. `hostBytes`:
/// nothing where the system does not say.
Status checkMemoryNeed(const plan::Plan &plan, int64_t ranksOnHost, std::optional<uint64_t> hostBytes);

} // namespace dg::session
