// SPDX-License-Identifier: Apache-2.0
// The verifier's part on memory. Private to this folder.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace dg::plan {

/// Every value aligned, large enough and inside its stage's arena; parameters, state and constants overlapped by
/// nothing.
Status verifyPlaces(const Plan &plan, const PlanFacts &facts);

/// No byte is written while another value needs it, and everything that touches the same bytes is ordered by
/// dependencies.
Status verifyLifetimes(const Plan &plan, const PlanFacts &facts, const Program &program);

} // namespace dg::plan
