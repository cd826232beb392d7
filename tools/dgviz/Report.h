// SPDX-License-Identifier: Apache-2.0
// All that dgviz knows about its input files, worked out once for every output.
#pragma once

#include "tools/dgviz/Advice.h"
#include "tools/dgviz/facts/Job.h"
#include "tools/dgviz/facts/PlanDifference.h"
#include "tools/dgviz/time/Trace.h"

#include <memory>
#include <optional>

namespace dg::viz {

struct ReportInputs {
  std::string job, trace, before; ///< paths; the last two may be empty
  std::string cluster;            ///< preset or file; empty: what the plan was made for
  int64_t replicas = 1;           ///< of each job, as dgrun -n would run them
};

struct Report {
  std::unique_ptr<Job> job;     ///< views point into it
  std::unique_ptr<Trace> trace; ///< null: none
  std::string clusterName;      ///< of the machines that times are predicted on
  bool isOwnCluster = true;     ///< the plan was made for these machines
  std::vector<ProgramView> programs;
  std::vector<Advice> advice; ///< per program
  std::string before;         ///< path of the plan that the job is compared with; empty: none
  std::vector<std::pair<std::string, PlanDifference>> differences; ///< by name of the programs that both have
};

/// Reads the files and works everything out. Fails with badInput on a bad file and with usage on a cluster that is too
/// small for the plan.
Result<Report> makeReport(const ReportInputs &inputs);
/// The same for a plan at hand: no trace, nothing to compare with.
Result<Report> makeReport(plan::Plan plan);

} // namespace dg::viz
