// SPDX-License-Identifier: Apache-2.0
// Proves that a plan's actions are those of its schedule with begin first and update last, and that each value gets as
// many slots as micro-batches may need it at once.
#include "partitioner/schedule/PlanSchedule.h"
#include "tests/unit/partitioner/PlanSketch.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::partitioner;
using namespace dg::partitioner::testing;
using plan::Phase;
using plan::ValueKind;

namespace {

/// A pipeline in which every stage saves one value for its backward pass; ids of the values by stage.
struct Pipeline {
  plan::Plan plan;
  std::vector<plan::ValueId> weight, sum, input, saved, inner, sent, received, gradient;
};

Pipeline makePipeline(uint32_t numStages, uint32_t microbatches) {
  PlanSketch sketch(numStages);
  Pipeline p;
  sketch.addProgram(plan::ProgramKind::train, microbatches);
  auto add = [&](std::vector<plan::ValueId> &list, uint32_t stage, ValueKind kind) {
    list.push_back(sketch.addValue(stage, kind, 16));
  };
  for (uint32_t stage = 0; stage < numStages; ++stage) {
    add(p.weight, stage, ValueKind::parameter);
    add(p.sum, stage, ValueKind::accumulator);
    add(p.input, stage, ValueKind::input);
    add(p.saved, stage, ValueKind::activation);
    add(p.inner, stage, ValueKind::activation);
    add(p.sent, stage, ValueKind::activation);
    add(p.received, stage, ValueKind::activation);
    add(p.gradient, stage, ValueKind::gradient);
    sketch.plan.programs[0].inputs.push_back({"x" + std::to_string(stage), {p.input[stage]}});
  }
  // Chunks in an order that is not that of the phases: the schedule goes by phase.
  for (uint32_t stage = 0; stage < numStages; ++stage) {
    sketch.addChunk(stage, Phase::update);
    sketch.addKernel({p.weight[stage], p.sum[stage]}, {p.weight[stage]});
    sketch.addChunk(stage, Phase::backward);
    sketch.addKernel({p.saved[stage]}, {p.gradient[stage]});
    sketch.addKernel({p.gradient[stage], p.sum[stage]}, {p.sum[stage]});
    sketch.addChunk(stage, Phase::forward);
    if (stage > 0) {
      plan::TaskId receive = sketch.addReceive(p.received[stage], stage - 1, stage);
      sketch.addFinish(receive);
    }
    sketch.addKernel({p.input[stage], p.weight[stage]}, {p.inner[stage]});
    sketch.addKernel({p.inner[stage]}, {p.saved[stage]});
    sketch.addKernel({p.saved[stage]}, {p.sent[stage]});
    if (stage + 1 < numStages)
      sketch.addSend(p.sent[stage], stage + 1, stage + 1);
    sketch.addChunk(stage, Phase::begin);
    sketch.addTask(plan::TaskKind::zero, {}, {p.sum[stage]});
  }
  // Evaluation has no backward chunk.
  sketch.addProgram(plan::ProgramKind::eval, microbatches);
  for (uint32_t stage = 0; stage < numStages; ++stage) {
    sketch.addChunk(stage, Phase::forward);
    sketch.addKernel({p.weight[stage]}, {sketch.addValue(stage, ValueKind::activation, 16)});
  }
  p.plan = std::move(sketch.plan);
  return p;
}

/// "begin F0 F1 B0 … update".
std::string actionsOf(const plan::Plan &plan, const plan::Program &program, uint32_t stage) {
  std::string text;
  for (const plan::Action &action : program.actions[stage]) {
    EXPECT_EQ(plan.chunks[action.chunk].stage, stage);
    EXPECT_EQ(&plan.programs[plan.chunks[action.chunk].program], &program);
    const char *names[] = {"begin", "F", "B", "update"};
    Phase phase = plan.chunks[action.chunk].phase;
    bool isNumbered = phase == Phase::forward || phase == Phase::backward;
    text += (text.empty() ? "" : " ") + std::string(names[int(phase)]) +
            (isNumbered ? std::to_string(action.microbatch) : "");
  }
  return text;
}

void schedule(plan::Plan &plan, const std::string &name) {
  Status status = schedulePlan(plan, *parseSchedule(name));
  ASSERT_TRUE(status) << status.message();
}

} // namespace

// 1F1B: a stage is as many forward passes ahead as there are stages from it to the end.
TEST(PlanScheduleTest, OneForwardOneBackward) {
  plan::Plan plan = makePipeline(3, 4).plan;
  schedule(plan, "1f1b");
  const plan::Program &train = plan.programs[0];
  EXPECT_EQ(train.schedule, "1f1b");
  ASSERT_EQ(train.actions.size(), 3u);
  EXPECT_EQ(actionsOf(plan, train, 0), "begin F0 F1 F2 B0 F3 B1 B2 B3 update");
  EXPECT_EQ(actionsOf(plan, train, 1), "begin F0 F1 B0 F2 B1 F3 B2 B3 update");
  EXPECT_EQ(actionsOf(plan, train, 2), "begin F0 B0 F1 B1 F2 B2 F3 B3 update");
}

// GPipe: all forward passes, then all backward passes, on every stage.
TEST(PlanScheduleTest, GPipe) {
  plan::Plan plan = makePipeline(3, 4).plan;
  schedule(plan, "gpipe");
  EXPECT_EQ(plan.programs[0].schedule, "gpipe");
  for (uint32_t stage = 0; stage < 3; ++stage)
    EXPECT_EQ(actionsOf(plan, plan.programs[0], stage), "begin F0 F1 F2 F3 B0 B1 B2 B3 update");
}

// A program without a backward chunk runs forward only, whatever the schedule of training is.
TEST(PlanScheduleTest, EvaluationRunsForwardOnly) {
  for (const char *name : {"gpipe", "1f1b"}) {
    plan::Plan plan = makePipeline(2, 3).plan;
    schedule(plan, name);
    EXPECT_EQ(plan.programs[1].schedule, "forward");
    for (uint32_t stage = 0; stage < 2; ++stage)
      EXPECT_EQ(actionsOf(plan, plan.programs[1], stage), "F0 F1 F2");
  }
}

// Scheduling again replaces the actions of before.
TEST(PlanScheduleTest, CanBeRepeated) {
  plan::Plan plan = makePipeline(2, 2).plan;
  schedule(plan, "gpipe");
  schedule(plan, "1f1b");
  EXPECT_EQ(actionsOf(plan, plan.programs[0], 1), "begin F0 B0 F1 B1 update");
}

// A stage without some phase leaves it out.
TEST(PlanScheduleTest, MissingPhasesAreLeftOut) {
  PlanSketch sketch(2);
  sketch.addProgram(plan::ProgramKind::train, 2);
  sketch.addChunk(0, Phase::forward);
  sketch.addKernel({}, {sketch.addValue(0, ValueKind::activation, 1)});
  for (Phase phase : {Phase::forward, Phase::backward}) {
    sketch.addChunk(1, phase);
    sketch.addKernel({}, {sketch.addValue(1, ValueKind::activation, 1)});
  }
  schedule(sketch.plan, "1f1b");
  EXPECT_EQ(actionsOf(sketch.plan, sketch.plan.programs[0], 0), "F0 F1");
  EXPECT_EQ(actionsOf(sketch.plan, sketch.plan.programs[0], 1), "F0 B0 F1 B1");
}

// Slots: what is saved lives in as many micro-batches as are in flight; what is sent may be under way while the next
// one is made; inputs are all there before the step; the rest is one.
TEST(PlanScheduleTest, SlotsAreThoseOfTheSchedule) {
  const uint32_t numStages = 3, microbatches = 5;
  for (const char *name : {"gpipe", "1f1b"}) {
    SCOPED_TRACE(name);
    Pipeline p = makePipeline(numStages, microbatches);
    schedule(p.plan, name);
    for (uint32_t stage = 0; stage < numStages; ++stage) {
      uint32_t inFlight = name[0] == 'g' ? microbatches : numStages - stage;
      auto slotsOf = [&](const std::vector<plan::ValueId> &list) { return p.plan.values[list[stage]].slots; };
      EXPECT_EQ(slotsOf(p.saved), inFlight);
      EXPECT_EQ(slotsOf(p.input), microbatches);
      EXPECT_EQ(slotsOf(p.weight), 1u);
      EXPECT_EQ(slotsOf(p.sum), 1u);
      EXPECT_EQ(slotsOf(p.inner), 1u);
      EXPECT_EQ(slotsOf(p.gradient), 1u);
      if (stage + 1 < numStages)
        EXPECT_GE(slotsOf(p.sent), 2u);
      if (stage > 0)
        EXPECT_GE(slotsOf(p.received), 2u);
    }
  }
}

// With one micro-batch every value has one slot.
TEST(PlanScheduleTest, OneMicrobatchNeedsOneSlot) {
  plan::Plan plan = makePipeline(3, 1).plan;
  schedule(plan, "1f1b");
  for (uint32_t stage = 0; stage < 3; ++stage)
    EXPECT_EQ(actionsOf(plan, plan.programs[0], stage), "begin F0 B0 update");
  for (const plan::Value &value : plan.values)
    EXPECT_EQ(value.slots, 1u) << value.name;
}

// Names that are unknown, or known but not there yet, are refused with the ones that are.
TEST(PlanScheduleTest, UnknownNamesAreRefused) {
  for (const char *name : {"fastest", ""}) {
    Status status = parseSchedule(name).status();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.kind(), ErrorKind::usage);
    EXPECT_NE(status.message().find("gpipe, 1f1b"), std::string::npos) << status.message();
  }
}

// What needs a second micro-batch says so.
TEST(PlanScheduleTest, OneMicrobatchIsTooFewForSome) {
  for (const char *name : {"interleaved:2", "zb-h1", "zb-v"}) {
    plan::Plan plan = makePipeline(2, 1).plan;
    Status status = schedulePlan(plan, *parseSchedule(name));
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.message(),
              fmt::format("schedule '{}' with one micro-batch to a step: give --microbatches, at least 2", name));
  }
}
