// SPDX-License-Identifier: Apache-2.0
// dgrun --probe: this host as a cluster file that dgc --cluster takes.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace dg::dgrun {

/// Measures a core's rate and memory, the way between two threads through memory and through TCP (a connection to the
/// host itself, open for the time of the measurement), and writes them as a cluster of one node with a device for each
/// core that this process may use. Takes about two seconds. Fails with runFailed where no connection can be made.
Result<std::string> probeHost();

} // namespace dg::dgrun
