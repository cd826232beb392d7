// SPDX-License-Identifier: Apache-2.0
// What a package holds that is shown: its plan, its parameters, the machines it was made for, why the search chose it,
// and the phases of its compilation.
#pragma once

#include "tools/dgviz/facts/Parameters.h"
#include "tools/dgviz/facts/Phases.h"
#include "tools/dgviz/facts/SearchReasons.h"

#include "partitioner/model/Cluster.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <optional>
#include <string>

namespace dg::viz {

struct Job {
  std::string path;
  plan::Plan plan;
  std::optional<std::vector<CompilerPhase>> phases;
  std::optional<SearchReasons> reasons;        ///< of a searched plan
  std::optional<partitioner::Cluster> cluster; ///< that it was predicted on; none in packages of older versions
  std::vector<Parameter> parameters;           ///< none in packages of older versions
  std::map<int64_t, double> sizes;             ///< of an inference with smaller batches too: predicted us by samples
};

/// Fails with badInput, and a message that names the file, on anything that is not a whole package with a readable
/// plan.
Result<Job> readJob(const std::string &path);

/// Whether the file starts as a package does; a trace does not. False if it cannot be read.
bool looksLikePackage(const std::string &path);

} // namespace dg::viz
