// SPDX-License-Identifier: Apache-2.0
// The verifier's part on the order of actions. Private to this folder.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace dg::plan {

/// Every (chunk, micro-batch) exactly once, begin first and update last, and every read finds the micro-batch that it
/// needs in its slot.
Status verifyActions(const Plan &plan, const PlanFacts &facts, const Program &program);

/// All stages reach the end when each runs its actions in order: a receive waits for its send, and a slot that was sent
/// is written again only after it was received. The channels must match (verifyChannels).
Status verifyProgress(const Plan &plan, const PlanFacts &facts, const Program &program);

} // namespace dg::plan
