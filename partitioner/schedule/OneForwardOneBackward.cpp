// SPDX-License-Identifier: Apache-2.0
// 1F1B, also called PipeDream-flush (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021):
// as many forward passes as it takes to fill the pipeline behind this stage, then one backward for each forward. The
// bubble is GPipe's; a stage keeps only min(m, p - stage) micro-batches. p = 3, m = 4:
//
//   stage 0  0 1 2 . . a 3 b . c . d
//   stage 1  . 0 1 . a 2 b 3 c . d .
//   stage 2  . . 0 a 1 b 2 c 3 d . .
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>

namespace dg::partitioner {

using plan::Phase;

static uint32_t heldByOneForwardOneBackward(uint32_t stage, const PipelineShape &shape) {
  return std::min(shape.numMicrobatches, shape.numStages - stage);
}

static StageSchedule orderOneForwardOneBackward(uint32_t stage, const PipelineShape &shape) {
  StageSchedule result;
  result.slots = heldByOneForwardOneBackward(stage, shape);
  uint32_t forward = 0, backward = 0;
  while (forward < result.slots)
    result.passes.push_back({Phase::forward, forward++});
  while (backward < shape.numMicrobatches) {
    result.passes.push_back({Phase::backward, backward++});
    if (forward < shape.numMicrobatches)
      result.passes.push_back({Phase::forward, forward++});
  }
  return result;
}

extern constexpr ScheduleDescriptor oneForwardOneBackward = {
    .name = "1f1b",
    .order = orderByStage<orderOneForwardOneBackward>,
    .fillShare = [](const PipelineShape &) { return 1.0; },
    .heldMicrobatches = [](uint32_t stage,
                           const PipelineShape &shape) { return double(heldByOneForwardOneBackward(stage, shape)); }};

} // namespace dg::partitioner
