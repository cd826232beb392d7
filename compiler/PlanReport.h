// SPDX-License-Identifier: Apache-2.0
// What --simulate and --explain print.
#pragma once

#include "compiler/Planning.h"

namespace dg::compiler {

/// The predicted step; empty for Form::none.
std::string simulationOf(const PlannedStep &planned, Form form);

/// Why the plan is as it is; empty for Form::none.
std::string explanationOf(const PlannedStep &planned, Form form);

} // namespace dg::compiler
