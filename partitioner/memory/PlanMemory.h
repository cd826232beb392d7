// SPDX-License-Identifier: Apache-2.0
// Gives every value its place in its stage's arena, and every task the tasks it must wait for.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::partitioner {

/// Fills offsets and strides of all values, Plan::memory, Predicted::peakBytes and Task::deps. Needs actions and slots
/// (schedulePlan). Parameters, state and constants come first; behind them each program lays out its own values, one
/// program over the other, because only one runs at a time. With one micro-batch a value's memory is free again after
/// its last use; with several, what leaves its chunk keeps its memory for the whole step.
void planMemory(plan::Plan &plan);

} // namespace dg::partitioner
