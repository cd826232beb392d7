// SPDX-License-Identifier: Apache-2.0
// How many messages of a plan can be under way at once, for the transport that is made before the executor.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg {

/// Requests that suffice for any step of a rank of `stage`: those of the program with the most, all of its
/// communications open at once. At most 2^18, above which a transport would take more memory than the messages.
uint32_t requestsNeeded(const plan::Plan &plan, uint32_t stage);

} // namespace dg
