// SPDX-License-Identifier: Apache-2.0
// The plan of a step before it is compiled: the model goes through the passes up to its gradients, the partitioner
// searches, and what it found is reported (--simulate, --explain) or compiled.
#pragma once

#include "compiler/Compile.h"
#include "partitioner/search/Explain.h"
#include "passes/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dg::compiler {

/// True where the flags ask for a search or for a report about a plan.
bool wantsPlanning(const Request &request);

/// What MixedPrecision decided about an op, and why.
struct PrecisionReason {
  std::string name, op, type, why;
};

struct PlannedStep {
  std::vector<PrecisionReason> precision; ///< empty where nothing is cast
  partitioner::Model model;
  partitioner::Cluster cluster; ///< as the search sees it: ranks that share cores have a part of their rates
  std::string machines;         ///< what is known of them, for people; "": nothing but `cluster`
  partitioner::SearchResult search;
};

/// Searches within what the flags leave open; where a job is to be written, only among plans that dgc can compile.
/// The module is not changed.
Result<PlannedStep> planStep(mlir::ModuleOp module, const Request &request, const std::string &optimizer,
                             bool isTraining);

/// What the search's pipeline and the job's have in common: all that the model, the flags and the device say of a step,
/// and nothing of how it is cut.
void describeStep(const Request &request, const std::string &optimizer, bool isTraining,
                  const partitioner::Cluster &cluster, passes::PipelineOptions &pipeline);

/// What the times of a plan for this host rest on: what was measured and when, or figures of a preset, and its cores
/// where the ranks are more. "" for another cluster, or none.
std::string describeHost(const Request &request, int64_t numRanks);

/// The cluster that --cluster names, or this host with --ranks (or the mesh's) ranks.
Result<partitioner::Cluster> chooseCluster(const Request &request, int64_t numRanks);

} // namespace dg::compiler
