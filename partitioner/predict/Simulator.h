// SPDX-License-Identifier: Apache-2.0
// Predicts a step by discrete events: the tasks of a plan run on one compute and one communication lane per stage (all
// ranks of a stage do the same at the same time), with durations from the cost model.
#pragma once

#include "partitioner/model/CostModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <vector>

namespace dg::partitioner {

/// When a task of one micro-batch ran on its lane. Receives and finish tasks take no time and are left out; a send is
/// as long as its lane is busy with it.
struct SimulatedTask {
  plan::TaskId task = 0;
  uint32_t microbatch = 0;
  double startUs = 0, endUs = 0;
};

/// Predicts one step of `program`, which must be one of the plan's; see simulate. With `tasks`, every task that took
/// its lane is added to it, in the order of their starts.
Result<plan::Predicted> simulateProgram(const plan::Plan &plan, const plan::Program &program, const CostModel &costs,
                                        std::vector<SimulatedTask> *tasks = nullptr);

/// Predicts one step of program "train", or of the first program if there is none of that name.
///   stepUs     until the last task of the last stage is complete
///   computeUs  kernels, of the stage that computes longest
///   commUs     communication of that same stage, whether hidden behind kernels or not
///   bubble     share of the step, mean of the stages, in which a stage neither computes nor communicates
///   peakBytes  the arenas of plan.memory
/// The plan should have passed plan::verify; still, a plan that cannot finish is an error (badInput) that names the
/// stage and the task it waits for. The cluster must have at least as many devices as the mesh has ranks (usage).
Result<plan::Predicted> simulate(const plan::Plan &plan, const CostModel &costs);

} // namespace dg::partitioner
