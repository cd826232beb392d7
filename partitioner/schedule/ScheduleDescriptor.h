// SPDX-License-Identifier: Apache-2.0
// What the rest of the project knows of a pipeline schedule: its name, what it asks of a program, the order of its
// passes and the closed forms of its time and memory. Each schedule is one file that defines one descriptor, with its
// paper and its timeline; ScheduleTable.cpp lists them all. Nothing else names a schedule.
#pragma once

#include "partitioner/schedule/Schedule.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dg::partitioner {

/// One schedule. All descriptors are constants that live as long as the process; they are told apart by address.
struct ScheduleDescriptor {
  std::string_view name;       ///< as `dgc --schedule` takes it
  uint32_t chunksPerStage = 1; ///< parts of the model that a stage holds, where the user does not say
  /// Where the user may choose the chunks: the search tries from `chunksPerStage` to so many. 0: they are fixed.
  uint32_t mostChunksSearched = 0;
  bool isFolded = false;       ///< the model goes down the stages and up again (V), else round and round
  bool splitsBackward = false; ///< gradients of inputs and of weights are passes of their own
  bool isSearched = true;      ///< the search tries it where the user names no schedule

  /// The order of passes on every stage, with its slots. Called with shapes that `constraint` accepts.
  std::vector<StageSchedule> (*order)(const PipelineShape &shape) = nullptr;
  /// Closed form of the time: of a step with stages of equal length T, the share of (p - 1) T that a stage waits at the
  /// ends of the pipeline. With forward passes, input gradients and weight gradients of one length and m >= 2p the step
  /// is never longer, and shorter by at most the share `fillError` of it.
  double (*fillShare)(const PipelineShape &shape) = nullptr;
  double fillError = 0;
  /// Closed form of the memory: most micro-batches whose activations a stage holds at once, or more. A chunk counts as
  /// its share of the stage.
  double (*heldMicrobatches)(uint32_t stage, const PipelineShape &shape) = nullptr;
  /// Fails with usage on numbers that the order cannot be made for; null: any will do.
  Status (*constraint)(const PipelineShape &shape) = nullptr;

  bool takesChunks() const { return mostChunksSearched > 0; }
  /// "1f1b", "interleaved:3".
  std::string textOf(uint32_t chunks) const;
  /// Whether a training step of this shape can be scheduled and compiled; asked by the search before it proposes one
  /// and by schedulePlan before it orders one. Fails with usage, saying what to give instead.
  Status check(const PipelineShape &shape) const;
};

/// All schedules, in the order in which help texts list them and the search tries them.
std::span<const ScheduleDescriptor *const> allSchedules();

/// What runs where nobody chooses: 1F1B.
const ScheduleDescriptor &defaultSchedule();

/// Those that the search tries where the user names none.
std::vector<const ScheduleDescriptor *> searchedSchedules();

/// Null where there is none of this name.
const ScheduleDescriptor *findSchedule(std::string_view name);

/// "gpipe, 1f1b, …", with `chunks` behind the names that take a number of chunks.
std::string listScheduleNames(std::string_view chunks = "");

/// A schedule as a user writes it.
struct ScheduleForm {
  const ScheduleDescriptor *schedule = &defaultSchedule();
  uint32_t chunksPerStage = 1;
  bool hasChunks = false; ///< the text says how many
};

/// Reads "1f1b" or "interleaved:3" (the schedule's own number of chunks where nothing is said). Fails with usage on an
/// unknown name, listing the known ones, and on chunks that the schedule does not take.
Result<ScheduleForm> parseSchedule(std::string_view text);

/// The schedule of one training step. Fails with usage on numbers that no order can be made for. An order for one
/// micro-batch exists even where `check` refuses to compile it.
Result<Schedule> makeSchedule(const ScheduleDescriptor &schedule, const PipelineShape &shape);

/// Rules of single stages, as the `order` of a descriptor.
template <StageSchedule (*rule)(uint32_t stage, const PipelineShape &shape)>
std::vector<StageSchedule> orderByStage(const PipelineShape &shape) {
  std::vector<StageSchedule> stages;
  for (uint32_t stage = 0; stage < shape.numStages; ++stage)
    stages.push_back(rule(stage, shape));
  return stages;
}

} // namespace dg::partitioner
