// SPDX-License-Identifier: Apache-2.0
// dgrun --export: the trained parameters of a checkpoint as a file, nothing is run.
#pragma once

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/plan/Plan.h"
#include "tools/dgrun/Flags.h"

namespace dg::dgrun {

/// Returns the exit code.
int exportWeights(const Flags &flags, const plan::Plan &plan, const LaunchOptions &options);

} // namespace dg::dgrun
