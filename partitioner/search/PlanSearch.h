// SPDX-License-Identifier: Apache-2.0
// The search for a plan: every mesh, number of micro-batches, schedule and way of sharding the optimizer is bounded
// from below, and those whose bound is below the best plan so far are searched, most promising first (branch and
// bound).
#pragma once

#include "partitioner/search/ShardingSearch.h"
#include "partitioner/search/StageSearch.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::partitioner {

/// A user's wish for some ops.
struct Pin {
  struct Target {
    uint32_t op = 0;
    int32_t choice = notPinned, stage = notPinned; ///< what is asked of it
  };
  std::string text; ///< as it was given
  std::vector<Target> targets;
};

/// Who asks for a tensor axis by hand gets one that is used, even where whole weights would be faster: at least so much
/// of the parameters that it can cut is cut.
inline constexpr double cutShareByHand = 0.5;

/// What is given; everything else is searched. 0 means: search.
struct SearchOptions {
  uint32_t numRanks = 1;
  uint32_t data = 0, tensor = 0, pipe = 0;
  uint32_t microbatches = 0;
  uint32_t maxMicrobatches = 65536;
  std::vector<const ScheduleDescriptor *> schedules = {&defaultSchedule()};
  uint32_t chunksPerRank = 0; ///< of schedules that take a number of chunks
  std::vector<uint32_t> zero = {0};
  Recompute recompute = Recompute::automatic;
  plan::DType precision = plan::DType::f32;
  double memoryBytes = 0;     ///< of a rank; 0: what the cluster's devices have
  double seconds = 0;         ///< stop after this; 0: never. Counts of work bound the search in any case
  uint32_t maxExpanded = 400; ///< configurations that are searched, not only bounded
  uint32_t numAlternatives = 8;
  double leastCutShare = 0;               ///< of the parameters that the tensor axis can cut
  std::vector<Pin> pins;                  ///< targets are ops of the model that is searched
  std::vector<std::string> forbiddenAxes; ///< "data", "tensor", "pipe": must have size 1
};

/// A whole plan of the search.
struct SearchedPlan {
  Configuration configuration;
  StagePlan stages;
  std::vector<int32_t> choices; ///< per op
  /// The ops of the searched model in the order that `stages` and `choices` are for; empty: as they were given.
  std::vector<uint32_t> order = {};
};

struct SearchResult {
  SearchedPlan best;
  double lowerBoundUs = 0; ///< no plan within the options is faster
  double gap = 0;          ///< best / lowerBound - 1
  double seconds = 0;
  std::string stopped; ///< "complete", "work", "time"
  uint32_t numConfigurations = 0, numExpanded = 0;
  std::vector<SearchedPlan> alternatives; ///< the best of other meshes, fastest first, without choices
};

/// "data=8,tensor=4,pipe=2, 16 micro-batches, 1f1b, zero 1, recompute 2 of 2 stages".
std::string describe(const SearchedPlan &plan);

/// Fails with usage where the options contradict each other (a mesh that is not the ranks) and where there is no plan,
/// naming the smallest set of constraints that cannot be met together and by how much memory falls short. Deterministic
/// but for a stop by time, which `stopped` names.
Result<SearchResult> searchPlan(const Model &model, const CostModel &costs, const SearchOptions &options);

/// The model in the order that the plan is for: what Prediction and Explain take.
Model inOrderOf(const Model &model, const SearchedPlan &plan);

/// The stage and the choice of every op, in the order of the model that was searched.
std::vector<uint32_t> stagesByOp(const SearchedPlan &plan);
std::vector<int32_t> choicesByOp(const SearchedPlan &plan);

/// The best plan of one configuration, in the model's order of ops or in another that crosses fewer bytes; nothing
/// where none fits. Where a stage has several parts of the model, `stages.begins` has all of them, made of equal
/// length, and memory is not looked at.
std::optional<SearchedPlan> searchParts(const Model &model, const CostModel &costs, const Configuration &configuration,
                                        const StageOptions &stages);

/// The best plan of one configuration, or nothing where none fits. What searchPlan expands.
std::optional<SearchedPlan> searchConfiguration(const Model &model, const CostModel &costs,
                                                const ShardingSearch &shardings, const Configuration &configuration,
                                                const StageOptions &stages);

} // namespace dg::partitioner
