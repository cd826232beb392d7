// SPDX-License-Identifier: Apache-2.0
// What a searched plan will do on its cluster, without hardware: the schedule run by discrete events over the stages'
// times, and the flops, bytes and memory that go with it.
#pragma once

#include "partitioner/predict/Traffic.h"
#include "partitioner/schedule/Schedule.h"
#include "partitioner/search/PlanSearch.h"

#include <vector>

namespace dg::partitioner {

struct StagePrediction {
  uint32_t firstOp = 0, lastOp = 0;
  double forwardUs = 0, backwardUs = 0; ///< of one micro-batch, collectives and recomputation included
  double syncUs = 0;
  double peakBytes = 0; ///< an upper bound
  bool isRecomputed = false;
};

struct Prediction {
  double stepUs = 0;
  double computeUs = 0, commUs = 0; ///< of the slowest stage, in a step
  double bubble = 0;                ///< mean share of the step in which a stage waits for another
  double tflopsPerDevice = 0;       ///< products and convolutions as executed, recomputation included
  double modelTflopsPerDevice = 0;  ///< the same without recomputation
  double utilisation = 0;           ///< tflopsPerDevice over the device's peak
  std::vector<StagePrediction> stages;
  Traffic traffic;
};

Prediction predict(const Model &model, const CostModel &costs, const SearchedPlan &plan);

/// The time from the first pass to the last when every stage runs its passes in order; `chunkUs` are the times of one
/// chunk pass of each stage, `sendUs` what a result takes to the next stage. Exposed for the tests of schedules.
struct PassTimes {
  double forwardUs = 0, inputGradientUs = 0, weightGradientUs = 0;
};
double runSchedule(const Schedule &schedule, const std::vector<PassTimes> &stages, double sendUs);

} // namespace dg::partitioner
