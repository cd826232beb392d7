// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC 2021): a stage holds v chunks of the model, so that a micro-batch comes by v times, and the bubble
// shrinks to (p-1)/v of a stage's passes. Micro-batches go in groups of p: p of them through chunk 0, the same p
// through chunk 1, and so on. p = 2, v = 2, m = 4 (digits: chunk 0, digits with a bar: chunk 1; letters: backward):
//
//   stage 0  0 1 0'1'2 . a'3 b'2'a 3'b . c'. d'c d
//   stage 1  . 0 1 0'a'1'b'2 a 3 b 2'c'3'd'c . d .
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>

namespace dg::partitioner {

using plan::Phase;

/// Forward passes of chunks before the first backward pass.
static uint32_t warmUpOf(uint32_t stage, const PipelineShape &shape) {
  return (shape.numStages - stage - 1) * 2 + (shape.chunksPerStage - 1) * shape.numStages;
}

static StageSchedule orderInterleaved(uint32_t stage, const PipelineShape &shape) {
  const uint32_t p = shape.numStages, v = shape.chunksPerStage, total = shape.numMicrobatches * v;
  StageSchedule result;
  auto add = [&](Phase phase, uint32_t k) {
    uint32_t chunk = k / p % v, microbatch = k / (p * v) * p + k % p;
    result.passes.push_back({phase, microbatch, phase == Phase::forward ? chunk : v - 1 - chunk});
  };
  uint32_t forward = 0, backward = 0;
  const uint32_t warmUp = std::min(total, warmUpOf(stage, shape));
  while (forward < warmUp)
    add(Phase::forward, forward++);
  while (backward < total) {
    if (forward < total)
      add(Phase::forward, forward++);
    result.slots = std::max(result.slots, forward - backward);
    add(Phase::backward, backward++);
  }
  return result;
}

static Status checkInterleaved(const PipelineShape &shape) {
  if (shape.chunksPerStage > 0 && shape.numMicrobatches % shape.numStages == 0)
    return Status::ok();
  return Status::error(ErrorKind::usage,
                       "an interleaved schedule of {} stages with {} micro-batches and {} chunks a stage; expected "
                       "micro-batches that are a multiple of the stages, and at least one chunk",
                       shape.numStages, shape.numMicrobatches, shape.chunksPerStage);
}

extern constexpr ScheduleDescriptor interleaved = {
    .name = "interleaved",
    .chunksPerStage = 2,
    .mostChunksSearched = 4,
    .order = orderByStage<orderInterleaved>,
    .fillShare = [](const PipelineShape &shape) { return 1.0 / shape.chunksPerStage; },
    .heldMicrobatches =
        [](uint32_t stage, const PipelineShape &shape) {
          return std::min<double>(shape.numMicrobatches, (warmUpOf(stage, shape) + 1.0) / shape.chunksPerStage);
        },
    .constraint = checkInterleaved};

} // namespace dg::partitioner
