// SPDX-License-Identifier: Apache-2.0
// The bridge to the partitioner: the graph as it will run goes through the search, whose mesh, micro-batches and
// schedule are given, and what it decides about stages and cuts is written into the ops.
#pragma once

#include "partitioner/model/Cluster.h"
#include "partitioner/search/PlanSearch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg::passes {

/// What a plan depends on besides the graph.
struct PlanRequest {
  /// All but the axes, which are those of the module's mesh.
  partitioner::Configuration configuration;
  std::optional<partitioner::Cluster> cluster;                  ///< none: hosts like those of the preset "cpu"
  double memoryBytes = std::numeric_limits<double>::infinity(); ///< of a rank
  double leastCutShare = partitioner::cutShareByHand; ///< see SearchOptions; 0 where a search chose the tensor axis
  partitioner::Recompute recompute = partitioner::Recompute::none; ///< automatic: by stage, where `memoryBytes` bind
  std::vector<std::string> pins;                                   ///< see Pins.h
};

/// What was decided, for reports.
struct GraphPlan {
  partitioner::Model model; ///< of one micro-batch, in the order that `plan` is for
  partitioner::SearchedPlan plan;
};

/// `found`, where given, gets the plan and must outlive the pass.
std::unique_ptr<mlir::Pass> createPlanGraph(PlanRequest request, GraphPlan *found);

} // namespace dg::passes
