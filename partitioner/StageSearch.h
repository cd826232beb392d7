// SPDX-License-Identifier: Apache-2.0
// Stages for given shardings: a dynamic program over the places where a stage may begin, in the manner of Alpa's (Zheng
// et al., OSDI 2022): for a bound on the slowest stage, the least sum; then the best bound.
#pragma once

#include "partitioner/StepModel.h"

#include <limits>
#include <optional>

namespace dg::partitioner {

enum class Recompute { automatic, none, full };

struct StageOptions {
  double memoryBytes = std::numeric_limits<double>::infinity(); ///< of a rank
  Recompute recompute = Recompute::automatic; ///< automatic: a stage recomputes where it does not fit otherwise
};

/// Where a stage may begin besides 0: before every op while there are few, else at the segments of the model, at most
/// `maxStageStarts` of them, evenly by work. Fewer places than stages: before every op again.
inline constexpr uint32_t maxStageStarts = 400;
std::vector<uint32_t> stageStarts(const StepTable &table, const std::vector<uint32_t> &bounds, uint32_t numStages);

/// The best stages, or nothing where no cut fits into memory. With few starts every bound on the slowest stage is
/// tried, with many the least one that fits and a few above. Deterministic.
std::optional<StagePlan> searchStages(const StepModel &step, const StepTable &table,
                                      const std::vector<uint32_t> &starts, const StageOptions &options);

/// What no choice of stages can go below, for a table of least costs (StepTable::least).
struct StageBound {
  double sumUs = 0;     ///< of all stages' times
  double largestUs = 0; ///< of the slowest stage
};

/// Nothing where no cut fits into memory, which is then proved for these starts.
std::optional<StageBound> boundStages(const StepModel &step, const StepTable &least,
                                      const std::vector<uint32_t> &starts, const StageOptions &options);

} // namespace dg::partitioner
