// SPDX-License-Identifier: Apache-2.0
// dgrun --verify: checkpoints are read and judged, nothing is run.
#pragma once

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/plan/Plan.h"
#include "tools/dgrun/Flags.h"

namespace dg::dgrun {

/// Prints a line for each checkpoint of --verify, and compares each with `plan` unless that is null. Returns the exit
/// code: 0 if all are whole, else 65 after a message.
int verifyCheckpoints(const Flags &flags, const plan::Plan *plan, const LaunchOptions &options);

} // namespace dg::dgrun
