// SPDX-License-Identifier: Apache-2.0
// How much memory this process holds, as the system counts it: what a plan's arena is compared with.
#pragma once

#include <cstdint>

namespace dg::session {

/// Bytes of this process that are in memory now; 0 where the system does not tell.
uint64_t residentBytes();
/// The most that it ever had.
uint64_t peakResidentBytes();

} // namespace dg::session
