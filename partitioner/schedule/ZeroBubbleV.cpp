// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): two chunks a stage, laid in a V: the model
// goes down the stages and comes up again, so that the last chunk is on the first stage and backward passes start
// there at once. The order is found by running all stages together with passes of one length: each takes an input
// gradient if one is ready, else a forward pass (of the later chunk first) while it holds fewer than 2p, else a weight
// gradient. With equal passes a stage waits for at most 3(p-1)/2 of them, whatever m: a quarter of what it waits in
// 1F1B. p = 2, m = 4 (digits: forward, letters: input gradients, capitals: weight gradients; with a bar: chunk 1):
//
//   stage 0  0 1 2 0'a'A'1'b'a B'b A 3 2'c'C'B c C 3'd'D'. d D
//   stage 1  . 0 0'1 1'a'a A'b'b 2 B'2'A 3 c'c C'3'B C d'd D'D
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>

namespace dg::partitioner {

namespace {

using plan::Phase;

class FoldedSchedule {
public:
  explicit FoldedSchedule(const PipelineShape &shape)
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

} // namespace

extern constexpr ScheduleDescriptor zeroBubbleV = {
    .name = "zb-v",
    .chunksPerStage = 2,
    .isFolded = true,
    .splitsBackward = true,
    .order = [](const PipelineShape &shape) { return FoldedSchedule(shape).run(); },
    .fillShare = [](const PipelineShape &) { return 0.25; }, // the most that the rule leaves
    .fillError = 0.03,
    .heldMicrobatches =
        [](uint32_t, const PipelineShape &shape) { return std::min<double>(shape.numMicrobatches, shape.numStages); }};

} // namespace dg::partitioner
