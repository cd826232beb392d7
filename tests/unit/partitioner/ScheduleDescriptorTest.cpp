// SPDX-License-Identifier: Apache-2.0
// Proves of every schedule in the table what its descriptor says: the order is complete and cannot deadlock, slots and
// closed forms are those of the order, search and compilation refuse the same numbers, and its plans verify. A new
// schedule is tested by being in the table.
#include "partitioner/memory/PlanMemory.h"
#include "partitioner/schedule/PlanSchedule.h"
#include "partitioner/search/Configurations.h"
#include "tests/unit/partitioner/PlanSketch.h"
#include "tests/unit/partitioner/Prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace dg;
using namespace dg::partitioner;
using plan::Phase;
using plan::ValueKind;

namespace {

/// Which of a chunk's passes: forward, input gradients (or all of them), weight gradients.
int kindOf(const Pass &pass) { return pass.phase == Phase::forward ? 0 : pass.part == GradientPart::weight ? 2 : 1; }

/// Most passes of chunks that are forward without their last gradients.
uint32_t mostHeld(const StageSchedule &stage) {
  int64_t held = 0, most = 0;
  for (const Pass &pass : stage.passes) {
    held += pass.phase == Phase::forward ? 1 : pass.part == GradientPart::input ? 0 : -1;
    most = std::max(most, held);
  }
  return uint32_t(most);
}

/// Numbers of chunks that the schedule may have.
std::vector<uint32_t> chunksOf(const ScheduleDescriptor &schedule) {
  if (!schedule.takesChunks())
    return {schedule.chunksPerStage};
  return {1, schedule.chunksPerStage, schedule.mostChunksSearched};
}

/// Calls `visit` with shapes of all chunks that the schedule may have, and whether the descriptor allows them.
template <typename Visit> void forEachShape(const ScheduleDescriptor &schedule, Visit visit) {
  for (uint32_t chunks : chunksOf(schedule))
    for (uint32_t p = 1; p <= 6; ++p)
      for (uint32_t m = 1; m <= 13; ++m) {
        SCOPED_TRACE(fmt::format("{}, {} stages, {} micro-batches", schedule.textOf(chunks), p, m));
        const PipelineShape shape{p, m, chunks};
        visit(shape, bool(schedule.check(shape)));
      }
}

/// A training step of one kernel a pass: every chunk of the model saves a value for its backward pass and sends its
/// result on, every backward pass sends its gradient back and adds to a sum.
struct PipelinePlan {
  PipelinePlan(const ScheduleDescriptor &schedule, const PipelineShape &shape)
      : schedule(schedule), shape(shape), numParts(shape.numStages * shape.chunksPerStage), sketch(shape.numStages) {
    sketch.addProgram(plan::ProgramKind::train, shape.numMicrobatches);
    for (uint32_t part = 0; part < numParts; ++part) {
      weights.push_back(sketch.addValue(stageOf(part), ValueKind::parameter, 16));
      sums.push_back(sketch.addValue(stageOf(part), ValueKind::accumulator, 16));
    }
    for (uint32_t stage = 0; stage < shape.numStages; ++stage) {
      addChunk(stage, Phase::begin);
      for (plan::ValueId sum : ofStage(sums, stage))
        sketch.addTask(plan::TaskKind::zero, {}, {sum});
    }
    for (uint32_t part = 0; part < numParts; ++part)
      addForward(part);
    for (uint32_t part = numParts; part-- > 0;)
      addBackward(part);
    for (uint32_t stage = 0; stage < shape.numStages; ++stage) {
      addChunk(stage, Phase::update);
      const std::vector<plan::ValueId> ownSums = ofStage(sums, stage), ownWeights = ofStage(weights, stage);
      for (plan::ValueId sum : ownSums)
        sketch.addFinish(sketch.addAllReduce(sum));
      for (size_t i = 0; i < ownSums.size(); ++i)
        sketch.addKernel({ownWeights[i], ownSums[i]}, {ownWeights[i]});
    }
    sketch.plan.programs[0].outputs = {{"loss", {sums.back()}}};
  }

  uint32_t stageOf(uint32_t part) const { return stageOfChunk(part, shape.numStages, schedule.isFolded); }
  std::vector<plan::ValueId> ofStage(const std::vector<plan::ValueId> &all, uint32_t stage) const {
    std::vector<plan::ValueId> own;
    for (uint32_t part = 0; part < numParts; ++part)
      if (stageOf(part) == stage)
        own.push_back(all[part]);
    return own;
  }
  void addChunk(uint32_t stage, Phase phase, uint32_t place = 0, bool isWeightPart = false) {
    sketch.addChunk(stage, phase);
    roles.push_back({place, isWeightPart});
  }
  /// What the neighbour sent last, on this stage.
  plan::ValueId take(uint32_t part, uint32_t from) {
    if (stageOf(from) == stageOf(part))
      return carried;
    plan::ValueId value = sketch.addValue(stageOf(part), ValueKind::activation, 16);
    sketch.addFinish(sketch.addReceive(value, stageOf(from), numChannels++));
    return value;
  }
  void pass(plan::ValueId value, uint32_t part, uint32_t to) {
    carried = value;
    if (stageOf(to) != stageOf(part))
      sketch.addSend(value, stageOf(to), numChannels);
  }

  void addForward(uint32_t part) {
    const uint32_t stage = stageOf(part);
    addChunk(stage, Phase::forward, part / shape.numStages);
    plan::ValueId in;
    if (part == 0) {
      in = sketch.addValue(stage, ValueKind::input, 16);
      sketch.plan.programs[0].inputs.push_back({"x", {in}});
    } else {
      in = take(part, part - 1);
    }
    saved.push_back(sketch.addValue(stage, ValueKind::activation, 16));
    sketch.addKernel({in, weights[part]}, {saved.back()});
    plan::ValueId out = sketch.addValue(stage, ValueKind::activation, 16);
    sketch.addKernel({saved.back()}, {out});
    if (part + 1 < numParts)
      pass(out, part, part + 1);
    else
      carried = out;
  }

  void addBackward(uint32_t part) {
    const uint32_t stage = stageOf(part);
    addChunk(stage, Phase::backward, part / shape.numStages);
    plan::ValueId in = part + 1 < numParts ? take(part, part + 1) : carried;
    plan::ValueId gradient = sketch.addValue(stage, ValueKind::gradient, 16);
    sketch.addKernel({in, saved[part]}, {gradient});
    if (part > 0) {
      plan::ValueId out = sketch.addValue(stage, ValueKind::gradient, 16);
      sketch.addKernel({gradient, weights[part]}, {out});
      pass(out, part, part - 1);
    }
    if (schedule.splitsBackward)
      addChunk(stage, Phase::backward, part / shape.numStages, true);
    sketch.addKernel({gradient, saved[part], sums[part]}, {sums[part]});
  }

  const ScheduleDescriptor &schedule;
  PipelineShape shape;
  uint32_t numParts, numChannels = 0;
  dg::partitioner::testing::PlanSketch sketch;
  std::vector<plan::ChunkRole> roles;
  std::vector<plan::ValueId> weights, sums, saved;
  plan::ValueId carried = 0;
};

/// Ops that cost the same, one after the other: forward pass, input gradients and weight gradients alike.
Model chain(uint32_t length, int64_t numSamples) {
  Model model;
  model.numSamples = numSamples;
  model.values.push_back({noOp, 64.0 * 64, true, true, false});
  for (uint32_t i = 0; i < length; ++i) {
    model.values.push_back({i, 64.0 * 64, true, true, true});
    ModelOp op;
    op.name = "op" + std::to_string(i);
    op.kind = "test.op";
    op.factorSizes = {64, 64};
    op.isCuttable = {0, 0};
    op.operands = {{i, {-1, -1}}};
    op.results = {{i + 1, {-1, -1}}};
    op.forward = op.inputGradient = op.weightGradient = {1e9, 1e9, 1e6, 1};
    model.ops.push_back(op);
  }
  return model;
}

} // namespace

class ScheduleDescriptorTest : public ::testing::TestWithParam<const ScheduleDescriptor *> {};
INSTANTIATE_TEST_SUITE_P(All, ScheduleDescriptorTest, ::testing::ValuesIn(allSchedules()), [](const auto &info) {
  std::string name(info.param->name);
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(uint8_t(c)); }, '_');
  return name;
});

// Names are different, and what is written of a schedule reads as that schedule.
TEST_P(ScheduleDescriptorTest, IsFoundByItsName) {
  const ScheduleDescriptor &own = *GetParam();
  EXPECT_EQ(findSchedule(own.name), &own);
  EXPECT_NE(parseSchedule("nothing").status().message().find(own.name), std::string::npos);
  for (uint32_t chunks : chunksOf(own)) {
    Result<ScheduleForm> form = parseSchedule(own.textOf(chunks));
    ASSERT_TRUE(form) << form.status().message();
    EXPECT_EQ(form->schedule, &own);
    EXPECT_EQ(form->chunksPerStage, chunks);
    EXPECT_EQ(form->hasChunks, own.takesChunks());
  }
  EXPECT_EQ(bool(parseSchedule(std::string(own.name) + ":2")), own.takesChunks());
}

// Every pass of every chunk once, in its order; no deadlock; slots are what the order holds, and the closed form of the
// memory is at least that.
TEST_P(ScheduleDescriptorTest, OrdersEveryPassOnce) {
  const ScheduleDescriptor &own = *GetParam();
  uint32_t numShapes = 0;
  forEachShape(own, [&](const PipelineShape &shape, bool isAllowed) {
    if (!isAllowed)
      return;
    ++numShapes;
    Result<Schedule> schedule = makeSchedule(own, shape);
    ASSERT_TRUE(schedule) << schedule.status().message();
    EXPECT_EQ(schedule->name, own.name);
    EXPECT_EQ(schedule->chunksPerStage, shape.chunksPerStage);
    EXPECT_EQ(schedule->isFolded, own.isFolded);
    ASSERT_EQ(schedule->stages.size(), shape.numStages);
    for (uint32_t stage = 0; stage < shape.numStages; ++stage) {
      std::map<std::tuple<uint32_t, uint32_t, int>, size_t> at;
      const StageSchedule &order = schedule->stages[stage];
      for (size_t i = 0; i < order.passes.size(); ++i) {
        const Pass &pass = order.passes[i];
        EXPECT_LT(pass.chunk, shape.chunksPerStage);
        EXPECT_LT(pass.microbatch, shape.numMicrobatches);
        EXPECT_EQ(pass.part != GradientPart::all, own.splitsBackward && pass.phase == Phase::backward);
        EXPECT_TRUE(at.insert({{pass.chunk, pass.microbatch, kindOf(pass)}, i}).second) << "twice";
      }
      EXPECT_EQ(at.size(), size_t(own.splitsBackward ? 3 : 2) * shape.numMicrobatches * shape.chunksPerStage);
      for (const auto &[key, place] : at)
        if (auto [chunk, microbatch, kind] = key; kind > 0)
          EXPECT_LT(at.at({chunk, microbatch, kind - 1}), place);
      EXPECT_LE(mostHeld(order), order.slots);
      EXPECT_LE(order.slots, own.heldMicrobatches(stage, shape) * shape.chunksPerStage + 1e-9);
    }
    EXPECT_LT(runSchedule(*schedule, std::vector<PassTimes>(shape.numStages, {1, 1, 1}), 0), 1e300) << "deadlock";
  });
  EXPECT_GE(numShapes, 20u);
}

// The closed form of the time is the run of the order by events, as exactly as the descriptor says.
TEST_P(ScheduleDescriptorTest, HasItsClosedForm) {
  const ScheduleDescriptor &own = *GetParam();
  for (uint32_t chunks : chunksOf(own))
    for (uint32_t p : {1, 2, 3, 4, 6, 8, 16})
      for (uint32_t m : {2 * p, 3 * p, 4 * p, 8 * p}) {
        SCOPED_TRACE(fmt::format("{}, {} stages, {} micro-batches", own.textOf(chunks), p, m));
        const PipelineShape shape{p, m, chunks};
        ASSERT_TRUE(own.check(shape));
        const double stageUs = 3, passUs = 1.0 / chunks; // a chunk takes its share of each of three passes
        const double closed = m * stageUs + own.fillShare(shape) * (p - 1) * stageUs;
        const double run =
            runSchedule(*makeSchedule(own, shape), std::vector<PassTimes>(p, {passUs, passUs, passUs}), 0);
        EXPECT_LE(run, closed * (1 + 1e-12));
        EXPECT_GE(run, closed * (1 - own.fillError - 1e-12));
      }
}

// What the descriptor allows is scheduled, laid out and verified; what it refuses is refused in its words.
TEST_P(ScheduleDescriptorTest, PlansVerify) {
  const ScheduleDescriptor &own = *GetParam();
  forEachShape(own, [&](const PipelineShape &shape, bool isAllowed) {
    PipelinePlan made(own, shape);
    plan::Plan &plan = made.sketch.plan;
    Status status = schedulePlan(plan, {&own, shape.chunksPerStage}, made.roles);
    ASSERT_EQ(bool(status), isAllowed) << status.message();
    if (!isAllowed) {
      EXPECT_EQ(status.message(), own.check(shape).message());
      return;
    }
    planMemory(plan);
    Status verified = plan::verify(plan);
    EXPECT_TRUE(verified) << verified.message();
  });
}

// One micro-batch leaves no backward pass that could be cut, and nothing for a second chunk to wait for.
TEST_P(ScheduleDescriptorTest, OneMicrobatchIsForWholeStages) {
  const ScheduleDescriptor &own = *GetParam();
  const Status status = own.check({2, 1, own.chunksPerStage});
  EXPECT_EQ(bool(status), !own.splitsBackward && own.chunksPerStage == 1);
  if (!status)
    EXPECT_EQ(status.message(),
              fmt::format("schedule '{}' with one micro-batch to a step: give --microbatches, at least 2",
                          own.textOf(own.chunksPerStage)));
}

// The search lists what can be compiled and nothing else, and says why where the user's numbers leave nothing.
TEST_P(ScheduleDescriptorTest, TheSearchListsWhatCanBeCompiled) {
  const ScheduleDescriptor &own = *GetParam();
  const Model model = chain(48, 12);
  SearchOptions options;
  options.numRanks = 4;
  options.schedules = {&own};
  std::set<std::pair<uint32_t, uint32_t>> listed;
  for (const Configuration &how : listConfigurations(model, options, model.ops.size())) {
    EXPECT_EQ(how.schedule, &own);
    EXPECT_TRUE(own.check(how.shape())) << how.meshText() << ", " << how.microbatches;
    if (how.data == 1)
      listed.insert({how.pipe, how.microbatches});
  }
  for (uint32_t m : {1, 2, 3, 4, 6, 12})
    EXPECT_EQ(listed.count({4, m}), bool(own.check({4, m, own.chunksPerStage}))) << m;
  const CostModel costs(hostCluster(4));
  options.pipe = 4;
  for (uint32_t m : {1, 3, 4}) {
    options.microbatches = m;
    Result<SearchResult> found = searchPlan(model, costs, options);
    const Status status = own.check({4, m, own.chunksPerStage});
    ASSERT_EQ(bool(found), bool(status)) << m;
    EXPECT_EQ(found.status().message(), status.message());
  }
}

// With one sample to a rank there is one micro-batch: the search takes a schedule that can be compiled for it.
TEST(ScheduleTableTest, OneMicrobatchIsNotGivenToAllSchedules) {
  const Model model = chain(48, 1);
  SearchOptions options;
  options.numRanks = options.pipe = 4;
  options.schedules = searchedSchedules();
  Result<SearchResult> found = searchPlan(model, CostModel(hostCluster(4)), options);
  ASSERT_TRUE(found) << found.status().message();
  EXPECT_EQ(found->best.configuration.microbatches, 1u);
  EXPECT_TRUE(found->best.configuration.schedule->check(found->best.configuration.shape())) << describe(found->best);
}
