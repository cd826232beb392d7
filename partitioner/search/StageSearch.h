// SPDX-License-Identifier: Apache-2.0
// Stages for given shardings: a dynamic program over the places where a stage may begin, in the manner of Alpa's (Zheng
// et al., OSDI 2022): for a bound on the slowest stage, the least sum; then the best bound.
#pragma once

#include "partitioner/predict/StepModel.h"

#include <limits>
#include <optional>

namespace dg::partitioner {

enum class Recompute { automatic, none, full };

/// What of the wish is possible: weight gradients of zero-bubble schedules come late and need what was saved; inference
/// has nothing to recompute.
Recompute allowedRecompute(const Model &model, const Configuration &how, Recompute wanted);

/// How a plan of one configuration is chosen.
struct StageOptions {
  double memoryBytes = std::numeric_limits<double>::infinity(); ///< of a rank
  Recompute recompute = Recompute::automatic; ///< automatic: a stage recomputes where it does not fit otherwise
  double leastCutShare = 0; ///< of the parameters that the tensor axis can cut: so much it does cut, see SearchOptions
};

/// Where a stage may begin besides 0, and the ops that a user has pinned to a stage.
struct StageStarts {
  std::vector<uint32_t> positions;
  std::vector<std::pair<uint32_t, int32_t>> pins; ///< op and stage, in the order of the ops
};

/// Every place that the model allows while there are few, else the segments among them, at most `maxStageStarts`,
/// evenly by work, and those before pinned ops. Fewer segments than stages: every place again.
inline constexpr uint32_t maxStageStarts = 400;
StageStarts stageStarts(const Model &model, const StepTable &table, const std::vector<uint32_t> &bounds,
                        uint32_t numStages);

/// The best stages, or nothing where no cut fits into memory. With few starts every bound on the slowest stage is
/// tried, with many the least one that fits and a few above. Deterministic.
std::optional<StagePlan> searchStages(const StepModel &step, const StepTable &table, const StageStarts &starts,
                                      const StageOptions &options);

/// The bytes of the largest stage where it is as small as it can be; nothing where pins leave no cut.
std::optional<double> leastStageBytes(const StepModel &step, const StepTable &table, const StageStarts &starts,
                                      Recompute recompute);

/// What no choice of stages can go below, for a table of least costs (StepTable::least).
struct StageBound {
  double sumUs = 0;     ///< of all stages' times
  double largestUs = 0; ///< of the slowest stage
};

/// Nothing where no cut fits into memory, which is then proved for these starts.
std::optional<StageBound> boundStages(const StepModel &step, const StepTable &least, const StageStarts &starts,
                                      const StageOptions &options);

} // namespace dg::partitioner
