// SPDX-License-Identifier: Apache-2.0
// Orders the chunks of a plan: the pipeline schedule becomes each stage's list of actions and each value's number of
// slots.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::partitioner {

/// Fills Program::schedule and Program::actions of every program, and Value::slots. Training programs follow the
/// schedule `name`; programs without a backward chunk run forward only. Fails with usage on an unknown name.
Status schedulePlan(plan::Plan &plan, const std::string &name);

} // namespace dg::partitioner
