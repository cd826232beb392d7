// SPDX-License-Identifier: Apache-2.0
// Proves which rank is named when nothing moves: the one that neither waits nor works, after three median steps.
#include "runtime/launch/StragglerWatch.h"

#include "runtime/executor/ProgressBoard.h"

#include <gtest/gtest.h>

using namespace dg;
using std::chrono::milliseconds;

namespace {

/// Ranks that train in steps of a given length; some of them stop.
class Watched : public testing::Test {
protected:
  void run(int64_t numRanks, milliseconds stepTime, milliseconds forTime) {
    ranks.resize(size_t(numRanks));
    for (milliseconds end = clock + forTime; clock < end; clock += milliseconds(100))
      for (int64_t rank = 0; rank < numRanks; ++rank)
        tell(rank, uint64_t(clock / stepTime) + 1, 0);
  }
  void tell(int64_t rank, uint64_t step, int32_t waitingFor, uint64_t pulses = 0) {
    RankProgress now;
    now.rank = rank;
    now.phase = uint32_t(RankPhase::training);
    now.step = step;
    now.waitingFor = waitingFor;
    now.pulses = pulses;
    watch.note(ranks[size_t(rank)], now, RankState::Time() + std::chrono::hours(1) + clock);
  }
  /// Rank `stuck` does nothing; the others wait for it. Milliseconds until it is named.
  int64_t timeUntilNamed(int64_t stuck, int32_t stuckWaitsFor = 0) {
    uint64_t step = ranks[0].progress.step;
    milliseconds begin = clock;
    for (uint64_t pulse = 1; clock < begin + std::chrono::minutes(1); ++pulse, clock += milliseconds(100)) {
      for (int64_t rank = 0; rank < int64_t(ranks.size()); ++rank)
        rank == stuck ? tell(rank, step, stuckWaitsFor) : tell(rank, step, int32_t(stuck) + 1, pulse);
      if (int64_t named = watch.find(ranks); named >= 0) {
        EXPECT_EQ(stuck, named);
        return (clock - begin).count();
      }
    }
    return -1;
  }
  StragglerWatch watch;
  std::vector<RankState> ranks;
  milliseconds clock{0};
};

TEST_F(Watched, nobodyIsNamedWhileAllMove) {
  run(4, milliseconds(500), std::chrono::seconds(20));
  EXPECT_EQ(-1, watch.find(ranks));
  EXPECT_NEAR(0.5, *watch.medianStepSeconds(), 0.11);
}

TEST_F(Watched, longStepsTakeThreeOfThem) {
  run(3, milliseconds(2000), std::chrono::seconds(40));
  int64_t after = timeUntilNamed(1);
  EXPECT_GE(after, 4000);
  EXPECT_LE(after, 6500);
}

TEST_F(Watched, shortStepsTakeASecond) {
  run(3, milliseconds(10), std::chrono::seconds(5));
  int64_t after = timeUntilNamed(2);
  EXPECT_GE(after, 800);
  EXPECT_LE(after, 1300);
}

// Suspended while it waited itself: its line says so, but its pulse has stopped.
TEST_F(Watched, suspendedWaiterIsNamed) {
  run(3, milliseconds(10), std::chrono::seconds(5));
  EXPECT_GT(timeUntilNamed(0, 2 + 1), 0);
}

// Many steps between two looks are enough to know how long one takes.
TEST_F(Watched, oneLookIsEnough) {
  ranks.resize(2);
  for (uint64_t step : {0, 0, 0, 50}) {
    clock += milliseconds(200);
    for (int64_t rank = 0; rank < 2; ++rank)
      tell(rank, step, 0);
  }
  EXPECT_NEAR(0.004, *watch.medianStepSeconds(), 1e-9);
  EXPECT_GT(timeUntilNamed(1), 0);
}

// A long kernel on every rank at once: nobody waits, nobody is to blame.
TEST_F(Watched, allBusyIsNoStraggler) {
  run(2, milliseconds(10), std::chrono::seconds(5));
  for (int i = 0; i < 100; ++i, clock += milliseconds(100))
    for (int64_t rank = 0; rank < 2; ++rank)
      tell(rank, 1000, 0);
  EXPECT_EQ(-1, watch.find(ranks));
}

TEST_F(Watched, whoWaitsInAnExchangeIsNotNamed) {
  run(2, milliseconds(10), std::chrono::seconds(5));
  ranks[0].parts.push_back("");
  EXPECT_GT(timeUntilNamed(1), 0);
}

// One of three works all the time, the others wait for it three quarters of theirs: it needs four times as long.
TEST_F(Watched, slowRankIsNamedOnce) {
  ranks.resize(3);
  int numNamed = 0;
  for (uint32_t look = 1; look <= 600; ++look, clock += milliseconds(100)) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      RankProgress now;
      now.rank = rank, now.phase = uint32_t(RankPhase::training), now.step = look;
      now.looks = look, now.waits = rank == 1 ? look / 50 : look - look / 4;
      watch.note(ranks[size_t(rank)], now, RankState::Time() + std::chrono::hours(1) + clock);
    }
    if (auto slow = watch.findSlow(ranks, RankState::Time() + std::chrono::hours(1) + clock)) {
      ++numNamed;
      EXPECT_EQ(1, slow->rank);
      EXPECT_NEAR(4, slow->factor(), 0.3);
      EXPECT_LT(clock, std::chrono::seconds(20));
    }
  }
  EXPECT_EQ(1, numNamed);
}

TEST_F(Watched, ranksThatAllWaitAreNotSlow) {
  ranks.resize(3);
  for (uint32_t look = 1; look <= 600; ++look, clock += milliseconds(100)) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      RankProgress now;
      now.rank = rank, now.phase = uint32_t(RankPhase::training), now.step = look;
      now.looks = look, now.waits = rank == 1 ? look / 3 : look - look / 4;
      watch.note(ranks[size_t(rank)], now, RankState::Time() + std::chrono::hours(1) + clock);
    }
    EXPECT_FALSE(watch.findSlow(ranks, RankState::Time() + std::chrono::hours(1) + clock));
  }
}

TEST_F(Watched, linkOverWhichRanksWaitIsFound) {
  ranks.resize(4);
  for (size_t rank = 0; rank < 4; ++rank)
    ranks[rank].host = rank < 2 ? "a" : "b";
  tell(0, 1, 1 + 1), tell(1, 1, 3 + 1), tell(2, 1, 0 + 1), tell(3, 1, 1 + 1);
  EXPECT_EQ(std::pair(int64_t(1), int64_t(3)), *StragglerWatch::findDeadLink(ranks));
  tell(3, 1, 0); // it works: no link is to blame for that
  tell(0, 1, 0);
  EXPECT_FALSE(StragglerWatch::findDeadLink(ranks));
}

} // namespace
