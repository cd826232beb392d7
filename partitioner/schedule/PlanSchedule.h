// SPDX-License-Identifier: Apache-2.0
// Orders the chunks of a plan: the pipeline schedule becomes each stage's list of actions and each value's number of
// slots.
#pragma once

#include "runtime/plan/ChunkRole.h"
#include "runtime/plan/Plan.h"

namespace dg::partitioner {

/// Fills Program::schedule and Program::actions of every program, and Value::slots. Training programs follow the
/// `schedule` ("1f1b", "interleaved:3"); programs without a backward chunk run forward only. `roles` tells the chunks
/// of a stage and phase apart, by chunk of the plan; none is needed where there is one. Fails with usage on an unknown
/// schedule, and on one that needs several micro-batches where a step has one.
Status schedulePlan(plan::Plan &plan, const std::string &schedule, const std::vector<plan::ChunkRole> &roles = {});

} // namespace dg::partitioner
