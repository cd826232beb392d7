// SPDX-License-Identifier: Apache-2.0
// What --simulate and --explain print.
#pragma once

#include "compiler/JobPlan.h"

namespace dg::compiler {

/// The step as the plan, which was searched and is complete, predicts it; empty for Form::none.
std::string simulationOf(const JobPlan &job, Form form);

/// Why the plan is as it is; empty for Form::none.
std::string explanationOf(const PlannedStep &planned, Form form);

} // namespace dg::compiler
