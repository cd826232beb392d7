// SPDX-License-Identifier: Apache-2.0
// The schedules themselves. To add one: write its rule with its timeline and paper, and give it a row in `schedules`.
#include "partitioner/Schedule.h"

#include <algorithm>

namespace dg::partitioner {

namespace {

using plan::Phase;

/// GPipe (Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019):
/// all forward passes, then all backward passes. Every stage keeps every micro-batch. p = 3, m = 4, time to the right
/// (digits: forward, letters: backward of micro-batch a = 0, b = 1, …):
///
///   stage 0  0 1 2 3 . . . . a b c d
///   stage 1  . 0 1 2 3 . . a b c d .
///   stage 2  . . 0 1 2 3 a b c d . .
///
/// Bubble: (p-1) of (m+p-1), as in every schedule that does not cut the model finer.
StageSchedule gpipe(uint32_t stage, uint32_t numStages, uint32_t numMicrobatches) {
  StageSchedule result;
  for (uint32_t m = 0; m < numMicrobatches; ++m)
    result.passes.push_back({Phase::forward, m});
  for (uint32_t m = 0; m < numMicrobatches; ++m)
    result.passes.push_back({Phase::backward, m});
  result.slots = numMicrobatches;
  return result;
}

/// 1F1B, also called PipeDream-flush (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021):
/// as many forward passes as it takes to fill the pipeline behind this stage, then one backward for each forward. The
/// bubble is GPipe's; a stage keeps only min(m, p - stage) micro-batches. p = 3, m = 4:
///
///   stage 0  0 1 2 . . a 3 b . c . d
///   stage 1  . 0 1 . a 2 b 3 c . d .
///   stage 2  . . 0 a 1 b 2 c 3 d . .
StageSchedule oneForwardOneBackward(uint32_t stage, uint32_t numStages, uint32_t numMicrobatches) {
  StageSchedule result;
  result.slots = std::min(numMicrobatches, numStages - stage);
  uint32_t forward = 0, backward = 0;
  while (forward < result.slots)
    result.passes.push_back({Phase::forward, forward++});
  while (backward < numMicrobatches) {
    result.passes.push_back({Phase::backward, backward++});
    if (forward < numMicrobatches)
      result.passes.push_back({Phase::forward, forward++});
  }
  return result;
}

/// Nothing waits for a backward pass, so a stage needs one micro-batch at a time. p = 3, m = 4:
///
///   stage 0  0 1 2 3 . .
///   stage 1  . 0 1 2 3 .
///   stage 2  . . 0 1 2 3
StageSchedule forwardOnly(uint32_t stage, uint32_t numStages, uint32_t numMicrobatches) {
  StageSchedule result;
  for (uint32_t m = 0; m < numMicrobatches; ++m)
    result.passes.push_back({Phase::forward, m});
  return result;
}

using Rule = StageSchedule (*)(uint32_t stage, uint32_t numStages, uint32_t numMicrobatches);

/// The names that --schedule takes. A name without a rule is reserved.
constexpr struct {
  std::string_view name;
  Rule rule;
} schedules[] = {
    {"gpipe", gpipe}, {"1f1b", oneForwardOneBackward}, {"interleaved", nullptr}, {"zb-h1", nullptr}, {"zb-v", nullptr},
};

std::string listSchedules() {
  std::string names;
  for (const auto &row : schedules)
    if (row.rule)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

Result<Rule> findRule(std::string_view name) {
  for (const auto &row : schedules) {
    if (row.name != name)
      continue;
    if (!row.rule)
      return Status::error(ErrorKind::usage, "schedule '{}' is not in this version; use one of: {}", name,
                           listSchedules());
    return row.rule;
  }
  return Status::error(ErrorKind::usage, "unknown schedule '{}'; use one of: {}", name, listSchedules());
}

Result<Schedule> applyRule(Rule rule, std::string_view name, uint32_t numStages, uint32_t numMicrobatches) {
  if (numStages == 0 || numMicrobatches == 0)
    return Status::error(ErrorKind::usage, "a schedule of {} stages and {} micro-batches; both must be at least 1",
                         numStages, numMicrobatches);
  Schedule schedule{std::string(name), {}};
  for (uint32_t stage = 0; stage < numStages; ++stage)
    schedule.stages.push_back(rule(stage, numStages, numMicrobatches));
  return schedule;
}

} // namespace

Status checkScheduleName(std::string_view name) { return findRule(name).status(); }

Result<Schedule> makeSchedule(std::string_view name, uint32_t numStages, uint32_t numMicrobatches) {
  Result<Rule> rule = findRule(name);
  if (!rule)
    return rule.status();
  return applyRule(*rule, name, numStages, numMicrobatches);
}

Result<Schedule> makeForwardSchedule(uint32_t numStages, uint32_t numMicrobatches) {
  return applyRule(forwardOnly, "forward", numStages, numMicrobatches);
}

} // namespace dg::partitioner
