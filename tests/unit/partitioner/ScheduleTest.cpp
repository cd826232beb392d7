// SPDX-License-Identifier: Apache-2.0
// Proves that every schedule is complete, keeps as many micro-batches as it says, cannot deadlock, and has the bubble
// that its paper gives.
#include "partitioner/Schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace dg;
using namespace dg::partitioner;
using plan::Phase;

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
      Schedule schedule = *makeForwardSchedule(p, m);
      EXPECT_EQ(runInOrder(schedule), m + p - 1);
      for (const StageSchedule &stage : schedule.stages) {
        EXPECT_EQ(stage.slots, 1u);
        ASSERT_EQ(stage.passes.size(), m);
        for (uint32_t i = 0; i < m; ++i)
          EXPECT_EQ(stage.passes[i], (Pass{Phase::forward, i}));
      }
    }
}

// An unknown name is answered with the known ones, a reserved one with "not in this version"; both are usage errors.
TEST(ScheduleNameTest, SaysWhatIsKnown) {
  EXPECT_TRUE(checkScheduleName("gpipe"));
  EXPECT_TRUE(checkScheduleName("1f1b"));
  for (const char *name : {"interleaved", "zb-h1", "zb-v"}) {
    Status status = checkScheduleName(name);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.kind(), ErrorKind::usage);
    EXPECT_EQ(status.message(), fmt::format("schedule '{}' is not in this version; use one of: gpipe, 1f1b", name));
  }
  Result<Schedule> unknown = makeSchedule("1F1B", 2, 4);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().kind(), ErrorKind::usage);
  EXPECT_EQ(unknown.status().message(), "unknown schedule '1F1B'; use one of: gpipe, 1f1b");
}

// No stages and no micro-batches are refused.
TEST(ScheduleNameTest, RejectsZero) {
  EXPECT_FALSE(makeSchedule("gpipe", 0, 4));
  EXPECT_FALSE(makeSchedule("1f1b", 2, 0));
  EXPECT_FALSE(makeForwardSchedule(0, 1));
}
