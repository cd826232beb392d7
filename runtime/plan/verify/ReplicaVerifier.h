// SPDX-License-Identifier: Apache-2.0
// The verifier's part on replicas: what is to be equal on the ranks of an axis is. Private to this folder.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace dg::plan {

/// Ranks that hold the same parameter, state or result keep it equal: nothing that differs over an axis is written to
/// it before it was reduced over that axis, no sum is reduced twice, and every sum over micro-batches is added to.
/// Where micro-batches are dealt to replicas, each sum over them crosses replicas once, in the update, before anything
/// else uses it, and nothing else crosses. The plan's structure must have been checked.
Status verifyReplicas(const Plan &plan, const PlanFacts &facts, const Program &program);

} // namespace dg::plan
