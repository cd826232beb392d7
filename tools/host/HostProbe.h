// SPDX-License-Identifier: Apache-2.0
// This host as a cluster: what dgrun --probe prints and what dgc plans for where no other is named. Apart from both,
// because dgrun links nothing of the compiler.
#pragma once

#include "partitioner/model/Cluster.h"
#include "runtime/support/Status.h"

#include <string>

namespace dg::tools {

/// One node with a device for each core that this process may use.
struct MeasuredHost {
  partitioner::Cluster cluster;
  std::string when;    ///< "2026-11-19 22:10 UTC"
  bool isBusy = false; ///< other work had the cores for a part of the time
};

/// Measures a core's rate and memory, the way between two threads through memory and through TCP (a connection to the
/// host itself, open for the time of the measurement). Takes one to two seconds. Fails with runFailed where no
/// connection can be made.
Result<MeasuredHost> probeHost();

} // namespace dg::tools
