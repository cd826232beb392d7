// SPDX-License-Identifier: Apache-2.0
// The verifier's part on who talks to whom. Private to this folder.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace dg::plan {

/// In each program every send has one matching receive (channel, stages, type, phase frequency), every collective over
/// the pipe axis stands once on every stage, and the collectives of a chunk and axis are numbered in their order.
Status verifyChannels(const Plan &plan, const PlanFacts &facts, const Program &program);

} // namespace dg::plan
