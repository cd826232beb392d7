// SPDX-License-Identifier: Apache-2.0
// The time and memory of a training step for given shardings, by closed forms: what the search minimises. Stages are
// ranges of the model's ops.
#pragma once

#include "partitioner/model/OpCosts.h"
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dg::partitioner {

/// Everything about a plan but its stages and shardings.
struct Configuration {
  uint32_t data = 1, tensor = 1, pipe = 1;
  uint32_t microbatches = 1;
  const ScheduleDescriptor *schedule = &defaultSchedule();
  uint32_t chunksPerRank = 1; ///< parts of the model on a stage: so often a micro-batch comes by, forwards
  uint32_t zero = 0; ///< what is cut over the data ranks: 1 optimizer state, 2 also gradients, 3 also parameters
  plan::DType precision = plan::DType::f32;
  uint32_t numRanks() const { return data * tensor * pipe; }
  PipelineShape shape() const { return {pipe, microbatches, chunksPerRank}; }
  std::string meshText() const;
  std::string scheduleText() const { return schedule->textOf(chunksPerRank); } ///< as parseSchedule reads it
};

/// Samples of a micro-batch on one data rank, the last micro-batch filled up.
double rowsOf(const Model &model, const Configuration &configuration);

/// The share of the gradients' reduction that is not hidden behind the backward pass; one of the calibrated constants
/// (README).
inline constexpr double exposedGradientShare = 0.3;

/// One stage: sums over its ops.
struct StageSums {
  double forwardUs = 0, inputGradientUs = 0, weightGradientUs = 0; ///< of one micro-batch, collectives included
  double parameterElements = 0, savedBytes = 0, keptBytes = 0;     ///< kept: what recomputation starts from
  double matrixFlops = 0, gradientMatrixFlops = 0;
  double stepUs(bool isRecomputed) const {
    return forwardUs * (isRecomputed ? 2 : 1) + inputGradientUs + weightGradientUs;
  }
};

/// Sums over any range of ops in O(1), for one choice of shardings.
class StepTable {
public:
  /// `bounds` are the model's segments: recomputation restarts at each of them.
  StepTable(const OpCosts &costs, const std::vector<int32_t> &choices, const std::vector<uint32_t> &bounds);
  /// Costs that no choice of shardings goes below, op by op: times without collectives, bytes as small as they get.
  /// With `segmentUs` (plain and recomputed time of each segment, at least) times are those of whole segments, and only
  /// cuts at segments may be asked for.
  static StepTable least(const OpCosts &costs, const std::vector<uint32_t> &bounds,
                         const std::vector<std::pair<double, double>> &segmentUs);
  uint32_t numOps() const { return uint32_t(prefix.size() - 1); }
  StageSums sums(uint32_t begin, uint32_t end) const;
  /// Bytes of one micro-batch that pass from before `position` to it and behind.
  double crossingBytes(uint32_t position) const { return crossing[position]; }
  /// The most that one segment saves: what recomputation needs at once.
  double largestSegmentBytes() const { return largestSegment; }

private:
  StepTable() = default;
  void addUp(const std::vector<StageSums> &own, const std::vector<uint32_t> &bounds);

  std::vector<StageSums> prefix;
  std::vector<double> crossing;
  double largestSegment = 0;
};

/// The cost of one stage.
struct StageCost {
  double stepUs = 0; ///< of one micro-batch, forward and backward
  double syncUs = 0; ///< gradients and update, once a step
  double bytes = 0;  ///< memory of a rank, an upper bound
};

/// The closed forms of one configuration on one cluster. Const and pure.
class StepModel {
public:
  StepModel(const Model &model, const CostModel &costs, const Configuration &configuration);
  const Configuration &configuration() const { return how; }

  StageCost stage(const StepTable &table, uint32_t begin, uint32_t end, uint32_t stage, bool isRecomputed) const;
  /// To send what crosses a cut forwards, and its gradient back.
  double sendUs(const StepTable &table, uint32_t position) const;
  /// Of the slowest device of a stage; of the fastest stage; of all stages together.
  double speedOf(uint32_t stage) const { return speeds[stage]; }
  double largestSpeed() const;
  double totalSpeed() const;
  /// Micro-batches whose activations a stage holds at once.
  double slotsOf(uint32_t stage) const { return how.schedule->heldMicrobatches(stage, how.shape()); }
  /// Step time from stage times: sum and largest of the stages' times, sends of all cuts, largest sync.
  double stepUs(double sumUs, double largestUs, double sendsUs, double syncUs) const;
  /// Bytes of a rank for each parameter element: weights, gradients, optimizer state.
  double bytesPerParameter() const;
  double syncUs(double parameterElements) const;
  /// Bytes that a rank sends over the data axis in a step.
  double dataBytes(double parameterElements) const;
  /// Collectives over the tensor axis of one micro-batch, made by these ops.
  double commUs(const OpCosts &costs, const std::vector<int32_t> &choices, const std::vector<Needs> &needs,
                uint32_t begin, uint32_t end, double forward) const;

private:
  const Model &model;
  const CostModel &costs;
  Configuration how;
  Group dataGroup;
  double fillShare;           ///< of the time of the other stages that stays idle at the ends of the pipeline
  std::vector<double> speeds; ///< by stage
  Link slowestLink;           ///< between neighbouring stages
};

/// Memory of recomputation that starts again at every k-th segment, for the best k (Chen et al., "Training Deep Nets
/// with Sublinear Memory Cost", 2016): what all segments would keep for one micro-batch, micro-batches, one segment's
/// own saving.
double recomputationBytes(double keptBytes, double slots, double segmentBytes);

/// One plan of the search: configuration, stages, recomputation, shardings.
struct StagePlan {
  std::vector<uint32_t> begins;      ///< first op of every stage
  std::vector<uint8_t> isRecomputed; ///< per stage
  double stepUs = 0;
  double peakBytes = 0;
};

/// The plan's step time and peak memory from its definition, whatever search made it.
StagePlan evaluate(const StepModel &step, const StepTable &table, std::vector<uint32_t> begins,
                   std::vector<uint8_t> isRecomputed);

} // namespace dg::partitioner
