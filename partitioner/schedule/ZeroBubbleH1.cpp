// SPDX-License-Identifier: Apache-2.0
// ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): 1F1B whose backward pass gives the gradients of the
// inputs at once and those of the weights later, where the stage would wait. Stage s leaves at most s of them behind,
// so that all stages hold as many micro-batches as the first of 1F1B, and the bubble is (p-1)(F + B - W): a third of
// 1F1B's with passes of one length. p = 3, m = 4 (letters: input gradients, capitals: weight gradients):
//
//   stage 0  0 1 2 . . a A 3 b B c C d D
//   stage 1  . 0 1 . a 2 b A 3 c B d C D
//   stage 2  . . 0 a 1 b 2 c A 3 d B C D
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>

namespace dg::partitioner {

using plan::Phase;

static uint32_t heldByZeroBubbleH1(const PipelineShape &shape) {
  return std::min(shape.numMicrobatches, shape.numStages);
}

static StageSchedule orderZeroBubbleH1(uint32_t stage, const PipelineShape &shape) {
  const uint32_t m = shape.numMicrobatches;
  StageSchedule result;
  result.slots = heldByZeroBubbleH1(shape);
  uint32_t forward = 0, backward = 0, weight = 0;
  auto addWeight = [&] { result.passes.push_back({Phase::backward, weight++, 0, GradientPart::weight}); };
  while (forward < std::min(m, shape.numStages - stage))
    result.passes.push_back({Phase::forward, forward++});
  while (backward < m) {
    result.passes.push_back({Phase::backward, backward++, 0, GradientPart::input});
    if (backward - weight > stage)
      addWeight();
    if (forward < m)
      result.passes.push_back({Phase::forward, forward++});
  }
  while (weight < m)
    addWeight();
  return result;
}

extern constexpr ScheduleDescriptor zeroBubbleH1 = {
    .name = "zb-h1",
    .splitsBackward = true,
    .order = orderByStage<orderZeroBubbleH1>,
    .fillShare = [](const PipelineShape &) { return 1.0 / 3; },
    .heldMicrobatches = [](uint32_t, const PipelineShape &shape) { return double(heldByZeroBubbleH1(shape)); }};

} // namespace dg::partitioner
