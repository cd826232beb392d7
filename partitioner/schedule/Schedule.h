// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: in which order a stage runs the forward and backward passes of the micro-batches, and how many of
// them it must keep at once. ScheduleDescriptor.h says which schedules there are.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dg::partitioner {

/// Which gradients a backward pass makes: zero-bubble schedules send those of the inputs on at once and leave those of
/// the weights for later.
enum class GradientPart { all, input, weight };

/// One pass of one micro-batch through a chunk of a stage; phase is forward or backward.
struct Pass {
  plan::Phase phase = plan::Phase::forward;
  uint32_t microbatch = 0;
  uint32_t chunk = 0; ///< of the stage's chunks, where it has several
  GradientPart part = GradientPart::all;
  bool operator==(const Pass &) const = default;
};

/// The numbers that a schedule is made for.
struct PipelineShape {
  uint32_t numStages = 1, numMicrobatches = 1, chunksPerStage = 1;
};

struct StageSchedule {
  std::vector<Pass> passes; ///< in the order in which they run
  /// Most micro-batches whose forward pass has started and whose backward pass has not ended: the buffers that an
  /// activation needs when micro-batch m uses slot m % slots. With several chunks: most of them together.
  uint32_t slots = 1;
};

struct Schedule {
  std::string name;
  std::vector<StageSchedule> stages;
  uint32_t chunksPerStage = 1;
  bool isFolded = false; ///< the model goes down the stages and up again (V), else round and round

  /// The place of a stage's chunk in the order in which a micro-batch goes through all chunks, and back.
  uint32_t chunkOf(uint32_t stage, uint32_t chunk) const;
  uint32_t stageOf(uint32_t chunk) const;
};

/// The stage of a chunk: chunks go round and round over the stages, or down and up again.
uint32_t stageOfChunk(uint32_t chunk, uint32_t numStages, bool isFolded);

/// The schedule of eval and infer: forward passes in order, one slot; with several chunks a stage, as many
/// micro-batches as stages through each chunk in turn. Fails with usage when a number is 0.
Result<Schedule> makeForwardSchedule(const PipelineShape &shape, bool isFolded = false);

} // namespace dg::partitioner
