// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019):
// all forward passes, then all backward passes. Every stage keeps every micro-batch. p = 3, m = 4, time to the right
// (digits: forward, letters: backward of micro-batch a = 0, b = 1, …):
//
//   stage 0  0 1 2 3 . . . . a b c d
//   stage 1  . 0 1 2 3 . . a b c d .
//   stage 2  . . 0 1 2 3 a b c d . .
//
// Bubble: (p-1) of (m+p-1), as in every schedule that does not cut the model finer.
#include "partitioner/schedule/ScheduleDescriptor.h"

namespace dg::partitioner {

using plan::Phase;

static StageSchedule orderGPipe(uint32_t, const PipelineShape &shape) {
  StageSchedule result;
  for (Phase phase : {Phase::forward, Phase::backward})
    for (uint32_t m = 0; m < shape.numMicrobatches; ++m)
      result.passes.push_back({phase, m});
  result.slots = shape.numMicrobatches;
  return result;
}

extern constexpr ScheduleDescriptor gpipe = {
    .name = "gpipe",
    .isSearched = false, // 1F1B is as fast with less memory
    .order = orderByStage<orderGPipe>,
    .fillShare = [](const PipelineShape &) { return 1.0; },
    .heldMicrobatches = [](uint32_t, const PipelineShape &shape) { return double(shape.numMicrobatches); }};

} // namespace dg::partitioner
