// SPDX-License-Identifier: Apache-2.0
// The schedules themselves. To add one: write its rule with its timeline and paper, and give it a row in `schedules`.
#include "partitioner/schedule/Schedule.h"

#include <algorithm>
#include <charconv>

namespace dg::partitioner {

namespace {

using plan::Phase;

struct ScheduleShape {
  uint32_t numStages = 1, numMicrobatches = 1, chunksPerStage = 1;
};
using Rule = StageSchedule (*)(uint32_t stage, const ScheduleShape &shape);

/// GPipe (Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019):
/// all forward passes, then all backward passes. Every stage keeps every micro-batch. p = 3, m = 4, time to the right
/// (digits: forward, letters: backward of micro-batch a = 0, b = 1, …):
///
///   stage 0  0 1 2 3 . . . . a b c d
///   stage 1  . 0 1 2 3 . . a b c d .
///   stage 2  . . 0 1 2 3 a b c d . .
///
/// Bubble: (p-1) of (m+p-1), as in every schedule that does not cut the model finer.
StageSchedule gpipe(uint32_t stage, const ScheduleShape &shape) {
  const uint32_t numMicrobatches = shape.numMicrobatches;
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
StageSchedule oneForwardOneBackward(uint32_t stage, const ScheduleShape &shape) {
  const uint32_t numMicrobatches = shape.numMicrobatches;
  StageSchedule result;
  result.slots = std::min(numMicrobatches, shape.numStages - stage);
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

/// Interleaved 1F1B (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM", SC 2021): a stage holds v chunks of the model, so that a micro-batch comes by v times, and the bubble
/// shrinks to (p-1)/v of a stage's passes. Micro-batches go in groups of p: p of them through chunk 0, the same p
/// through chunk 1, and so on. p = 2, v = 2, m = 4 (digits: chunk 0, digits with a bar: chunk 1; letters: backward):
///
///   stage 0  0 1 0'1'2 . a'3 b'2'a 3'b . c'. d'c d
///   stage 1  . 0 1 0'a'1'b'2 a 3 b 2'c'3'd'c . d .
StageSchedule interleaved(uint32_t stage, const ScheduleShape &shape) {
  const uint32_t p = shape.numStages, v = shape.chunksPerStage, total = shape.numMicrobatches * v;
  StageSchedule result;
  auto add = [&](Phase phase, uint32_t k) {
    uint32_t chunk = k / p % v, microbatch = k / (p * v) * p + k % p;
    result.passes.push_back({phase, microbatch, phase == Phase::forward ? chunk : v - 1 - chunk});
  };
  uint32_t forward = 0, backward = 0;
  const uint32_t warmUp = std::min(total, (p - stage - 1) * 2 + (v - 1) * p);
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

/// ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): 1F1B whose backward pass gives the gradients of the
/// inputs at once and those of the weights later, where the stage would wait. Stage s leaves at most s of them behind,
/// so that all stages hold as many micro-batches as the first of 1F1B, and the bubble is (p-1)(F + B - W). p = 3, m = 4
/// (letters: input gradients, capitals: weight gradients):
///
///   stage 0  0 1 2 . . a A 3 b B c C d D
///   stage 1  . 0 1 . a 2 b A 3 c B d C D
///   stage 2  . . 0 a 1 b 2 c A 3 d B C D
StageSchedule zeroBubbleH1(uint32_t stage, const ScheduleShape &shape) {
  const uint32_t m = shape.numMicrobatches;
  StageSchedule result;
  result.slots = std::min(m, shape.numStages);
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

/// ZB-V (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): two chunks a stage, laid in a V: the model
/// goes down the stages and comes up again, so that the last chunk is on the first stage and backward passes start
/// there at once. The order is found by running all stages together with passes of one length: each takes an input
/// gradient if one is ready, else a forward pass (of the later chunk first) while it holds fewer than 2p, else a weight
/// gradient. With
/// equal passes a stage waits for at most 3(p-1)/2 of them, whatever m: a quarter of what it waits in 1F1B.
class FoldedSchedule {
public:
  explicit FoldedSchedule(const ScheduleShape &shape)
      : p(shape.numStages), m(shape.numMicrobatches), states(p), forwardAt(size_t(2) * p * m, never),
        backwardAt(size_t(2) * p * m, never) {}

  std::vector<StageSchedule> run() {
    for (uint32_t now = 0; !isDone(); ++now)
      for (uint32_t stage = 0; stage < p; ++stage)
        step(stage, now);
    std::vector<StageSchedule> result;
    for (State &state : states)
      result.push_back(std::move(state.schedule));
    return result;
  }

private:
  static constexpr uint32_t never = UINT32_MAX;
  struct State {
    StageSchedule schedule;
    uint32_t forward[2] = {0, 0}, backward[2] = {0, 0}, weight[2] = {0, 0};
    uint32_t held() const { return forward[0] - weight[0] + forward[1] - weight[1]; }
  };

  uint32_t chunkOf(uint32_t stage, uint32_t chunk) const { return chunk == 0 ? stage : 2 * p - 1 - stage; }
  bool isOver(const std::vector<uint32_t> &times, uint32_t chunk, uint32_t microbatch, uint32_t now) const {
    uint32_t at = times[size_t(chunk) * m + microbatch];
    return at != never && at < now;
  }
  bool isDone() const {
    return std::all_of(states.begin(), states.end(),
                       [&](const State &state) { return state.weight[0] == m && state.weight[1] == m; });
  }

  void step(uint32_t stage, uint32_t now) {
    State &state = states[stage];
    auto add = [&](Phase phase, uint32_t microbatch, uint32_t chunk, GradientPart part) {
      state.schedule.passes.push_back({phase, microbatch, chunk, part});
      state.schedule.slots = std::max(state.schedule.slots, state.held());
    };
    for (uint32_t chunk : {1u, 0u}) { // the gradient nearer to the loss first
      uint32_t microbatch = state.backward[chunk], own = chunkOf(stage, chunk);
      if (microbatch == m || !isOver(forwardAt, own, microbatch, now) ||
          (own + 1 < 2 * p && !isOver(backwardAt, own + 1, microbatch, now)))
        continue;
      backwardAt[size_t(own) * m + microbatch] = now;
      ++state.backward[chunk];
      return add(Phase::backward, microbatch, chunk, GradientPart::input);
    }
    for (uint32_t chunk : {1u, 0u}) {
      uint32_t microbatch = state.forward[chunk], own = chunkOf(stage, chunk);
      // Room is kept for the way up of what has come down, or nobody could go on.
      uint32_t limit = chunk == 1 ? 2 * p : 2 * p - std::min(state.forward[0] - state.forward[1], 1u);
      if (microbatch == m || state.held() >= limit || (own > 0 && !isOver(forwardAt, own - 1, microbatch, now)))
        continue;
      forwardAt[size_t(own) * m + microbatch] = now;
      ++state.forward[chunk];
      return add(Phase::forward, microbatch, chunk, GradientPart::all);
    }
    for (uint32_t chunk : {1u, 0u})
      if (state.weight[chunk] < state.backward[chunk]) {
        uint32_t microbatch = state.weight[chunk]++;
        return add(Phase::backward, microbatch, chunk, GradientPart::weight);
      }
  }

  uint32_t p, m;
  std::vector<State> states;
  std::vector<uint32_t> forwardAt, backwardAt; ///< [chunk * m + micro-batch]
};

/// Nothing waits for a backward pass, so a stage needs one micro-batch at a time. p = 3, m = 4:
///
///   stage 0  0 1 2 3 . .
///   stage 1  . 0 1 2 3 .
///   stage 2  . . 0 1 2 3
///
/// With several chunks a stage, groups of p go through one chunk after the other, as in interleaved 1F1B.
StageSchedule forwardOnly(uint32_t stage, const ScheduleShape &shape) {
  const uint32_t group = shape.chunksPerStage == 1 ? shape.numMicrobatches : shape.numStages;
  StageSchedule result;
  for (uint32_t begin = 0; begin < shape.numMicrobatches; begin += group)
    for (uint32_t chunk = 0; chunk < shape.chunksPerStage; ++chunk)
      for (uint32_t m = begin; m < std::min(begin + group, shape.numMicrobatches); ++m)
        result.passes.push_back({Phase::forward, m, chunk});
  return result;
}

/// The names that --schedule takes. zb-v has no rule for one stage alone: its stages are ordered together.
constexpr struct {
  std::string_view name;
  Rule rule;
  uint32_t chunksPerStage;
  bool isFolded, splitsBackward;
} schedules[] = {
    {"gpipe", gpipe, 1, false, false},
    {"1f1b", oneForwardOneBackward, 1, false, false},
    {"interleaved", interleaved, 2, false, false},
    {"zb-h1", zeroBubbleH1, 1, false, true},
    {"zb-v", nullptr, 2, true, true},
};

Status unknownSchedule(std::string_view name) {
  std::string names;
  for (const auto &row : schedules)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return Status::error(ErrorKind::usage, "unknown schedule '{}'; use one of: {}", name, names);
}

Schedule applyRule(Rule rule, std::string_view name, const ScheduleShape &shape) {
  Schedule schedule{std::string(name), {}, shape.chunksPerStage, false};
  for (uint32_t stage = 0; stage < shape.numStages; ++stage)
    schedule.stages.push_back(rule(stage, shape));
  return schedule;
}

Status checkNumbers(const ScheduleShape &shape) {
  if (shape.numStages == 0 || shape.numMicrobatches == 0 || shape.chunksPerStage == 0)
    return Status::error(ErrorKind::usage, "a schedule of {} stages and {} micro-batches; both must be at least 1",
                         shape.numStages, shape.numMicrobatches);
  return Status::ok();
}

/// Interleaved chunks take the micro-batches in groups of as many as there are stages.
Status checkGroups(std::string_view name, const ScheduleShape &shape) {
  if (name == "interleaved" && (shape.chunksPerStage == 0 || shape.numMicrobatches % shape.numStages != 0))
    return Status::error(ErrorKind::usage,
                         "an interleaved schedule of {} stages with {} micro-batches and {} chunks a stage; expected "
                         "micro-batches that are a multiple of the stages, and at least one chunk",
                         shape.numStages, shape.numMicrobatches, shape.chunksPerStage);
  return Status::ok();
}

} // namespace

uint32_t Schedule::chunkOf(uint32_t stage, uint32_t chunk) const {
  const uint32_t numStages = uint32_t(stages.size());
  return isFolded && chunk % 2 == 1 ? (chunk + 1) * numStages - 1 - stage : chunk * numStages + stage;
}

uint32_t stageOfChunk(uint32_t chunk, uint32_t numStages, bool isFolded) {
  const uint32_t place = chunk % numStages;
  return isFolded && chunk / numStages % 2 == 1 ? numStages - 1 - place : place;
}

uint32_t Schedule::stageOf(uint32_t chunk) const { return stageOfChunk(chunk, uint32_t(stages.size()), isFolded); }

Result<ScheduleForm> parseSchedule(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const auto &row : schedules) {
    if (row.name != name)
      continue;
    ScheduleForm form{std::string(name), row.chunksPerStage, row.isFolded, row.splitsBackward};
    if (colon == std::string_view::npos)
      return form;
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    auto [last, error] = std::from_chars(begin, end, form.chunksPerStage);
    if (name != "interleaved" || error != std::errc() || last != end || form.chunksPerStage < 1 ||
        form.chunksPerStage > 1024)
      return Status::error(ErrorKind::usage, "--schedule {}: expected chunks of a rank, as interleaved:2", text);
    return form;
  }
  return unknownSchedule(name);
}

Status checkTrainingShape(const ScheduleForm &form, uint32_t numStages, uint32_t numMicrobatches) {
  DG_RETURN_IF_ERROR(checkNumbers({numStages, numMicrobatches, form.chunksPerStage}));
  if (numMicrobatches == 1 && (form.splitsBackward || form.chunksPerStage > 1))
    return Status::error(ErrorKind::usage,
                         "schedule '{}{}' with one micro-batch to a step: give --microbatches, at least 2", form.name,
                         form.name == "interleaved" ? fmt::format(":{}", form.chunksPerStage) : "");
  return checkGroups(form.name, {numStages, numMicrobatches, form.chunksPerStage});
}

Result<Schedule> makeSchedule(std::string_view name, uint32_t numStages, uint32_t numMicrobatches,
                              uint32_t chunksPerStage) {
  ScheduleShape shape{numStages, numMicrobatches, 1};
  DG_RETURN_IF_ERROR(checkNumbers(shape));
  for (const auto &row : schedules) {
    if (row.name != name)
      continue;
    if (name == "interleaved")
      shape.chunksPerStage = chunksPerStage;
    DG_RETURN_IF_ERROR(checkGroups(name, shape));
    if (row.rule)
      return applyRule(row.rule, name, shape);
    shape.chunksPerStage = 2;
    return Schedule{std::string(name), FoldedSchedule(shape).run(), 2, true};
  }
  return unknownSchedule(name);
}

Result<Schedule> makeForwardSchedule(uint32_t numStages, uint32_t numMicrobatches, uint32_t chunksPerStage,
                                     bool isFolded) {
  ScheduleShape shape{numStages, numMicrobatches, chunksPerStage};
  DG_RETURN_IF_ERROR(checkNumbers(shape));
  Schedule schedule = applyRule(forwardOnly, "forward", shape);
  schedule.isFolded = isFolded;
  return schedule;
}

} // namespace dg::partitioner
