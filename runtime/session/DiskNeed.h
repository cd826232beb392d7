// SPDX-License-Identifier: Apache-2.0
// Whether the checkpoints that a training is going to write fit on the disk, asked before the first step and not at the
// save that fails hours later.
#pragma once

#include "runtime/session/Training.h"

#include <string>

namespace dg::session {

/// What will not fit and what to do about it, or "". `doneSteps`: of a training that is resumed.
std::string describeDiskNeed(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples,
                             int64_t doneSteps);

} // namespace dg::session
