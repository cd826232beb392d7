// SPDX-License-Identifier: Apache-2.0
// Orders the chunks of a plan: the pipeline schedule becomes each stage's list of actions and each value's number of
// slots.
#pragma once

#include "partitioner/schedule/ScheduleDescriptor.h"
#include "runtime/plan/ChunkRole.h"
#include "runtime/plan/Plan.h"

namespace dg::partitioner {

/// Fills Program::schedule and Program::actions of every program, and Value::slots. Training programs follow the
/// schedule of `form`; programs without a backward chunk run forward only. `roles` tells the chunks of a stage and
/// phase apart, by chunk of the plan; none is needed where there is one. Fails with usage on stages and micro-batches
/// that the schedule's descriptor refuses.
Status schedulePlan(plan::Plan &plan, const ScheduleForm &form, const std::vector<plan::ChunkRole> &roles = {});

} // namespace dg::partitioner
