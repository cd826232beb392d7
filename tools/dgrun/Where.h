// SPDX-License-Identifier: Apache-2.0
// How this dgrun takes part in a job: alone on one host, as one of several nodes started by hand, or as one of the
// processes that srun or mpirun has started.
#pragma once

#include "runtime/launch/NodeLauncher.h"
#include "runtime/launch/ranks/ProcessManager.h"
#include "runtime/plan/Plan.h"
#include "tools/dgrun/Flags.h"

namespace dg::dgrun {

struct Where {
  std::unique_ptr<ProcessManager> manager; ///< null: not under srun or mpirun
  int64_t numNodes = 1, node = 0;
  int64_t numLocal = 1;    ///< ranks that this dgrun starts
  int64_t ranksOnHost = 1; ///< with those of other dgruns on this host
  int64_t replicas = 1;    ///< of the plan, on all nodes together

  bool isAlone() const { return numNodes == 1; }
};

/// Fails (usage) when flags, plan and launcher do not fit together. Several replicas run where the ranks of all nodes,
/// which start equally many, are a multiple of the plan's.
Result<Where> findWhere(const Flags &flags, const plan::Plan &plan);

/// Meets the other launchers, if there are any, and runs the job. `fingerprint` must be equal on all nodes.
int launch(Where where, const Flags &flags, LaunchOptions options, const std::string &fingerprint,
           const RankMain &rankMain);

} // namespace dg::dgrun
