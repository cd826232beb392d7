// SPDX-License-Identifier: Apache-2.0
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>

namespace dg::partitioner {

uint32_t Schedule::chunkOf(uint32_t stage, uint32_t chunk) const {
  const uint32_t numStages = uint32_t(stages.size());
  return isFolded && chunk % 2 == 1 ? (chunk + 1) * numStages - 1 - stage : chunk * numStages + stage;
}

uint32_t stageOfChunk(uint32_t chunk, uint32_t numStages, bool isFolded) {
  const uint32_t place = chunk % numStages;
  return isFolded && chunk / numStages % 2 == 1 ? numStages - 1 - place : place;
}

uint32_t Schedule::stageOf(uint32_t chunk) const { return stageOfChunk(chunk, uint32_t(stages.size()), isFolded); }

static Status checkNumbers(const PipelineShape &shape) {
  if (shape.numStages == 0 || shape.numMicrobatches == 0 || shape.chunksPerStage == 0)
    return Status::error(ErrorKind::usage, "a schedule of {} stages and {} micro-batches; both must be at least 1",
                         shape.numStages, shape.numMicrobatches);
  return Status::ok();
}

Result<Schedule> makeSchedule(const ScheduleDescriptor &schedule, const PipelineShape &shape) {
  DG_RETURN_IF_ERROR(checkNumbers(shape));
  if (schedule.constraint)
    DG_RETURN_IF_ERROR(schedule.constraint(shape));
  return Schedule{std::string(schedule.name), schedule.order(shape), shape.chunksPerStage, schedule.isFolded};
}

/// Nothing waits for a backward pass, so a stage needs one micro-batch at a time. p = 3, m = 4:
///
///   stage 0  0 1 2 3 . .
///   stage 1  . 0 1 2 3 .
///   stage 2  . . 0 1 2 3
///
/// With several chunks a stage, groups of p go through one chunk after the other, as in interleaved 1F1B.
static StageSchedule orderForward(uint32_t, const PipelineShape &shape) {
  const uint32_t group = shape.chunksPerStage == 1 ? shape.numMicrobatches : shape.numStages;
  StageSchedule result;
  for (uint32_t begin = 0; begin < shape.numMicrobatches; begin += group)
    for (uint32_t chunk = 0; chunk < shape.chunksPerStage; ++chunk)
      for (uint32_t m = begin; m < std::min(begin + group, shape.numMicrobatches); ++m)
        result.passes.push_back({plan::Phase::forward, m, chunk});
  return result;
}

Result<Schedule> makeForwardSchedule(const PipelineShape &shape, bool isFolded) {
  DG_RETURN_IF_ERROR(checkNumbers(shape));
  return Schedule{"forward", orderByStage<orderForward>(shape), shape.chunksPerStage, isFolded};
}

} // namespace dg::partitioner
