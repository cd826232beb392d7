// SPDX-License-Identifier: Apache-2.0
// Proves that every schedule is complete, keeps as many micro-batches as it says, cannot deadlock, and has the bubble
// that its paper gives.
#include "partitioner/predict/StepModel.h"
#include "partitioner/schedule/ScheduleDescriptor.h"
#include "tests/unit/partitioner/Prediction.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace dg;
using namespace dg::partitioner;
using plan::Phase;

/// The schedule of this name; `chunks` is asked for by those that take a number of them.
static Result<Schedule> makeSchedule(std::string_view name, uint32_t p, uint32_t m, uint32_t chunks = 2) {
  Result<ScheduleForm> form = parseSchedule(name);
  if (!form)
    return form.status();
  return makeSchedule(*form->schedule, {p, m, form->schedule->takesChunks() ? chunks : form->chunksPerStage});
}

/// Runs every stage in order with unit-time passes; a forward needs the stage before, a backward the stage behind.
/// Returns the end of the step, or 0 on deadlock.
static uint32_t runInOrder(const Schedule &schedule) {
  const size_t p = schedule.stages.size();
  std::map<std::tuple<size_t, Phase, uint32_t>, uint32_t> doneAt;
  std::vector<size_t> next(p);
  std::vector<uint32_t> freeAt(p);
  for (bool hasMoved = true; hasMoved;) {
    hasMoved = false;
    for (size_t s = 0; s < p; ++s) {
      while (next[s] < schedule.stages[s].passes.size()) {
        Pass pass = schedule.stages[s].passes[next[s]];
        uint32_t start = freeAt[s];
        bool isFirst = pass.phase == Phase::forward ? s == 0 : s + 1 == p;
        if (!isFirst) {
          auto needed = doneAt.find({pass.phase == Phase::forward ? s - 1 : s + 1, pass.phase, pass.microbatch});
          if (needed == doneAt.end())
            break;
          start = std::max(start, needed->second);
        }
        freeAt[s] = start + 1;
        doneAt[{s, pass.phase, pass.microbatch}] = freeAt[s];
        ++next[s];
        hasMoved = true;
      }
    }
  }
  for (size_t s = 0; s < p; ++s)
    if (next[s] < schedule.stages[s].passes.size())
      return 0;
  return *std::max_element(freeAt.begin(), freeAt.end());
}

class ScheduleTest : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, ScheduleTest, testing::Values("gpipe", "1f1b"));

// Every pass once, backward after forward, in flight as many as the slots say and never two in one slot, no deadlock,
// bubble (p-1)/(m+p-1): for all p up to 8 and m up to 16.
TEST_P(ScheduleTest, KeepsItsPromises) {
  for (uint32_t p = 1; p <= 8; ++p) {
    for (uint32_t m = 1; m <= 16; ++m) {
      Result<Schedule> schedule = makeSchedule(GetParam(), p, m);
      ASSERT_TRUE(schedule) << schedule.status().message();
      EXPECT_EQ(schedule->name, GetParam());
      ASSERT_EQ(schedule->stages.size(), p);
      for (const StageSchedule &stage : schedule->stages) {
        std::set<std::pair<Phase, uint32_t>> seen;
        std::map<uint32_t, uint32_t> inFlight; // slot -> micro-batch
        size_t most = 0;
        for (Pass pass : stage.passes) {
          EXPECT_LT(pass.microbatch, m);
          EXPECT_TRUE(seen.insert({pass.phase, pass.microbatch}).second);
          uint32_t slot = pass.microbatch % stage.slots;
          if (pass.phase == Phase::forward) {
            EXPECT_TRUE(inFlight.emplace(slot, pass.microbatch).second) << "slot in use";
          } else {
            EXPECT_TRUE(seen.count({Phase::forward, pass.microbatch}));
            EXPECT_EQ(inFlight.at(slot), pass.microbatch);
            inFlight.erase(slot);
          }
          most = std::max(most, inFlight.size());
        }
        EXPECT_EQ(seen.size(), 2 * m);
        EXPECT_TRUE(inFlight.empty());
        EXPECT_EQ(most, stage.slots);
      }
      uint32_t end = runInOrder(*schedule);
      ASSERT_GT(end, 0u) << "deadlock";
      EXPECT_EQ(end, 2 * (m + p - 1)); // of which each stage works 2m: the rest is (p-1)/(m+p-1)
    }
  }
}

// 1F1B keeps min(m, p - stage) micro-batches where GPipe keeps all.
TEST(ScheduleSlotsTest, OneForwardOneBackwardKeepsFewer) {
  Schedule schedule = *makeSchedule("1f1b", 4, 8), gpipe = *makeSchedule("gpipe", 4, 8);
  for (uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(schedule.stages[s].slots, 4 - s);
    EXPECT_EQ(gpipe.stages[s].slots, 8u);
  }
  EXPECT_EQ(makeSchedule("1f1b", 4, 2)->stages[0].slots, 2u);
}

// The forward schedule takes m + p - 1 and one slot.
TEST(ForwardScheduleTest, FillsThePipeline) {
  for (uint32_t p = 1; p <= 5; ++p)
    for (uint32_t m = 1; m <= 7; ++m) {
      Schedule schedule = *makeForwardSchedule({p, m});
      EXPECT_EQ(runInOrder(schedule), m + p - 1);
      for (const StageSchedule &stage : schedule.stages) {
        EXPECT_EQ(stage.slots, 1u);
        ASSERT_EQ(stage.passes.size(), m);
        for (uint32_t i = 0; i < m; ++i)
          EXPECT_EQ(stage.passes[i], (Pass{Phase::forward, i}));
      }
    }
}

// A name says how many chunks a rank holds; an unknown one is answered with the known ones.
TEST(ScheduleNameTest, SaysWhatIsKnown) {
  for (auto [text, chunks, isFolded, splits] : {std::tuple{"gpipe", 1u, false, false},
                                                {"1f1b", 1u, false, false},
                                                {"interleaved", 2u, false, false},
                                                {"interleaved:3", 3u, false, false},
                                                {"zb-h1", 1u, false, true},
                                                {"zb-v", 2u, true, true}}) {
    Result<ScheduleForm> form = parseSchedule(text);
    ASSERT_TRUE(form) << text;
    EXPECT_EQ(form->chunksPerStage, chunks) << text;
    EXPECT_EQ(form->schedule->isFolded, isFolded) << text;
    EXPECT_EQ(form->schedule->splitsBackward, splits) << text;
  }
  for (const char *text : {"1f1b:2", "interleaved:0", "interleaved:x", "interleaved:"}) {
    Result<ScheduleForm> form = parseSchedule(text);
    ASSERT_FALSE(form) << text;
    EXPECT_EQ(form.status().message(), fmt::format("--schedule {}: expected chunks of a rank, as interleaved:2", text));
  }
  Result<Schedule> unknown = makeSchedule("1F1B", 2, 4);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().kind(), ErrorKind::usage);
  EXPECT_EQ(unknown.status().message(), "unknown schedule '1F1B'; use one of: gpipe, 1f1b, interleaved, zb-h1, zb-v");
}

/// Every pass of every chunk once, forward before backward before weight gradients, and the time with passes of
/// `times`.
static double checkAndRun(const Schedule &schedule, uint32_t m, PassTimes times) {
  for (const StageSchedule &stage : schedule.stages) {
    std::map<std::tuple<uint32_t, uint32_t, int>, size_t> at; // chunk, micro-batch, 0 forward 1 input 2 weight
    for (size_t i = 0; i < stage.passes.size(); ++i) {
      const Pass &pass = stage.passes[i];
      int kind = pass.phase == Phase::forward ? 0 : pass.part == GradientPart::weight ? 2 : 1;
      EXPECT_TRUE(at.insert({{pass.chunk, pass.microbatch, kind}, i}).second);
      if (pass.phase == Phase::backward && pass.part == GradientPart::all)
        EXPECT_TRUE(at.insert({{pass.chunk, pass.microbatch, 2}, i}).second);
    }
    EXPECT_EQ(at.size(), size_t(3) * m * schedule.chunksPerStage);
    for (auto [key, place] : at) {
      auto [chunk, microbatch, kind] = key;
      if (kind > 0)
        EXPECT_LE(at.at({chunk, microbatch, kind - 1}), place);
    }
  }
  return runSchedule(schedule, std::vector<PassTimes>(schedule.stages.size(), times), 0);
}

/// Most passes forward without their weight gradients, on one stage.
static uint32_t mostHeld(const StageSchedule &stage) {
  int64_t held = 0, most = 0;
  for (const Pass &pass : stage.passes) {
    held += pass.phase == Phase::forward ? 1 : pass.part == GradientPart::input ? 0 : -1;
    most = std::max(most, held);
  }
  return uint32_t(most);
}

// The search's micro-batches in memory are what a stage of the schedule really holds, or more: its bytes are an upper
// bound. Chunks of a stage share them.
TEST(ScheduleMemoryTest, TheStepModelHoldsAsManyMicrobatches) {
  const Model model;
  for (uint32_t p : {1, 2, 3, 4, 8})
    for (uint32_t m : {p, 2 * p, 4 * p})
      for (const ScheduleDescriptor *own : allSchedules()) {
        const uint32_t chunks = own->takesChunks() ? 3 : own->chunksPerStage;
        const CostModel costs(hostCluster(p));
        const StepModel step(model, costs, {.pipe = p, .microbatches = m, .schedule = own, .chunksPerRank = chunks});
        const Schedule schedule = *makeSchedule(*own, {p, m, chunks});
        for (uint32_t stage = 0; stage < p; ++stage) {
          SCOPED_TRACE(fmt::format("{} of {} stages with {} micro-batches, stage {}", own->name, p, m, stage));
          const double held = step.slotsOf(stage) * schedule.chunksPerStage;
          EXPECT_GE(held, mostHeld(schedule.stages[stage]));
          if (!own->isFolded) // its order leaves some stages with fewer than it allows
            EXPECT_DOUBLE_EQ(held, schedule.stages[stage].slots);
        }
      }
}

// The closed forms of the papers, with equal stages: (p-1)(F+B) idle of 1F1B, shrunk v times by interleaving,
// (p-1)(F+B-W) of ZB-H1, with F, B, W the forward pass, the input gradients and the weight gradients.
TEST(ScheduleTimeTest, EqualsTheClosedForms) {
  for (uint32_t p : {1, 2, 3, 4, 8})
    for (uint32_t m : {p, 2 * p, 4 * p}) {
      const double F = 2, B = 3, W = 2;
      EXPECT_DOUBLE_EQ(checkAndRun(*makeSchedule("1f1b", p, m), m, {F, B, W}), (m + p - 1) * (F + B + W));
      for (uint32_t v : {1, 2, 4}) // a chunk takes 1/v of its stage
        EXPECT_NEAR(checkAndRun(*makeSchedule("interleaved", p, m, v), m, {F / v, B / v, W / v}),
                    m * (F + B + W) + (p - 1) * (F + B + W) / v, 1e-9)
            << "p " << p << " m " << m << " v " << v;
      Schedule zeroBubble = *makeSchedule("zb-h1", p, m);
      if (m >= 2 * p)
        EXPECT_DOUBLE_EQ(checkAndRun(zeroBubble, m, {F, B, W}), m * (F + B + W) + (p - 1) * (F + B - W))
            << "p " << p << " m " << m;
      for (const StageSchedule &stage : zeroBubble.stages)
        EXPECT_LE(mostHeld(stage), std::min(m, p));
    }
}

// ZB-V with equal passes: a stage waits for at most 3(p-1)/2 of them, whatever the micro-batches, and holds at most 2p
// halves, as much as the first stage of 1F1B.
TEST(ScheduleTimeTest, FoldedScheduleWaitsLittle) {
  for (uint32_t p : {1, 2, 3, 4, 8})
    for (uint32_t m : {2 * p, 4 * p, 6 * p}) {
      Schedule schedule = *makeSchedule("zb-v", p, m);
      EXPECT_LE(checkAndRun(schedule, m, {1, 1, 1}), 6 * m + 1.5 * (p - 1)) << "p " << p << " m " << m;
      for (const StageSchedule &stage : schedule.stages) {
        EXPECT_EQ(stage.slots, mostHeld(stage));
        EXPECT_LE(stage.slots, 2 * p);
      }
    }
}

// Interleaving asks for micro-batches in groups of the stages.
TEST(ScheduleNameTest, InterleavedRejectsRemainders) {
  Result<Schedule> schedule = makeSchedule("interleaved", 4, 6, 2);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.status().message(), "an interleaved schedule of 4 stages with 6 micro-batches and 2 chunks a "
                                         "stage; expected micro-batches that are a "
                                         "multiple of the stages, and at least one chunk");
}

// No stages and no micro-batches are refused.
TEST(ScheduleNameTest, RejectsZero) {
  EXPECT_FALSE(makeSchedule("gpipe", 0, 4));
  EXPECT_FALSE(makeSchedule("1f1b", 2, 0));
  EXPECT_FALSE(makeForwardSchedule({0, 1}));
}
