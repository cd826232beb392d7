// SPDX-License-Identifier: Apache-2.0
// The plan verifier: indices.
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanIndices.h"
namespace dg::plan {
Status verify(const Plan &plan) { return checkIndices(plan); }
} // namespace dg::plan
