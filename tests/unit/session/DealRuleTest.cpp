// SPDX-License-Identifier: Apache-2.0
// Proves that shares of micro-batches may change in the middle of a training without changing what is learned, that the
// same shares give the same bits, that who is slow gets fewer, and what --deal takes.
#include "runtime/session/rules/DealRule.h"
#include "runtime/plan/Replication.h"
#include "tests/unit/session/ThreadedRun.h"

#include <algorithm>
#include <random>

using namespace dg;
using namespace dg::session;
using dg::test::ThreadedRun;
using dg::test::toyData;
using dg::test::ToyPlanner;

namespace {

constexpr uint32_t microbatches = 8;

plan::Plan planOf(int64_t replicas, int64_t pipe, int64_t data) {
  auto plan = plan::replicate(ToyPlanner(pipe, data, 16, microbatches).take(), replicas);
  EXPECT_TRUE(plan) << plan.status().message();
  Status status = plan::verify(*plan);
  EXPECT_TRUE(status) << status.message();
  return *plan;
}

TrainingOptions optionsOf(const std::string &deal) {
  TrainingOptions options;
  options.epochs = 3;
  options.learningRate = 0.05;
  options.seed = 7;
  options.deal = *DealRule::parse(deal);
  return options;
}

/// 53 samples in batches of 16: the last of an epoch has empty micro-batches.
std::vector<float> lossesOf(ThreadedRun &run, const std::string &deal) {
  data::Dataset dataset = toyData(run.plan, 53), evaluated = toyData(run.plan, 21, 5);
  run.train(optionsOf(deal), dataset, &evaluated);
  for (const Status &failure : run.failures)
    ADD_FAILURE() << failure.message();
  return run.reporter.losses();
}

std::string refusalOf(const std::string &text) {
  auto rule = DealRule::parse(text);
  return rule ? "" : rule.status().message();
}

} // namespace

TEST(DealRule, changesNothingOfWhatIsLearned) {
  for (int64_t pipe : {1, 2})
    for (int64_t data : {1, 2}) {
      ThreadedRun one(planOf(1, pipe, data));
      std::vector<float> expected = lossesOf(one, "even");
      ASSERT_EQ(expected.size(), 12u);
      for (const char *deal : {"even", "6/1/1", "3/3/2,5:1/6/1,9:2/2/4", "balanced"}) {
        ThreadedRun run(planOf(3, pipe, data));
        std::vector<float> found = lossesOf(run, deal);
        ASSERT_EQ(found.size(), expected.size()) << deal;
        for (size_t step = 0; step < found.size(); ++step)
          EXPECT_NEAR(found[step], expected[step], 1e-5 * std::abs(expected[step])) << deal << ", step " << step;
        ASSERT_EQ(run.reporter.evaluations.size(), one.reporter.evaluations.size());
        for (size_t i = 0; i < run.reporter.evaluations.size(); ++i)
          EXPECT_NEAR(run.reporter.evaluations[i].loss, one.reporter.evaluations[i].loss, 1e-5);
      }
    }
}

TEST(DealRule, whatWasDealtRepeatsTheBits) {
  ThreadedRun first(planOf(3, 1, 1));
  std::vector<float> losses = lossesOf(first, "3/3/2,5:1/6/1,9:2/2/4");
  ASSERT_EQ(first.reporter.deals.size(), 3u);
  EXPECT_EQ(first.reporter.deals[1].step, 5);
  EXPECT_EQ(first.reporter.deals[1].shares, (Shares{1, 6, 1}));
  EXPECT_EQ(first.reporter.deals[2].repeat, "3/3/2,5:1/6/1,9:2/2/4");
  ThreadedRun second(planOf(3, 1, 1));
  EXPECT_EQ(lossesOf(second, first.reporter.deals[2].repeat), losses);
}

TEST(DealRule, readsWhatItWrites) {
  for (const char *text : {"even", "balanced", "3/3/2", "3/3/2,120:4/2/2", "1,7:2,9:1"}) {
    auto rule = DealRule::parse(text);
    ASSERT_TRUE(rule) << rule.status().message();
    EXPECT_EQ(rule->describe(), text);
  }
  DealRule rule = *DealRule::parse("3/3/2,120:4/2/2");
  EXPECT_EQ(rule.sharesAt(119), (Shares{3, 3, 2}));
  EXPECT_EQ(rule.sharesAt(120), (Shares{4, 2, 2}));
  EXPECT_TRUE(rule.check(3, 8));
  EXPECT_NE(rule.check(2, 8).message().find("3 replicas"), std::string::npos);
  EXPECT_NE(rule.check(3, 9).message().find("the job has 9"), std::string::npos);
  for (const char *text :
       {"", "odd", "3/0/5", "3//2", "3/3/2,4/2/2", "0:3/3/2", "3/3/2,9:4/2/2,9:2/2/4", "3/3/-2", "3/3/2,"})
    EXPECT_NE(refusalOf(text).find("expected even, balanced"), std::string::npos) << text;
}

TEST(DealRule, theSlowerOneGetsFewer) {
  EXPECT_EQ(dealBySpeed(8, {1, 1, 1}), (Shares{3, 3, 2}));
  EXPECT_EQ(dealBySpeed(8, {3, 1, 1}), (Shares{1, 4, 3}));
  EXPECT_EQ(dealBySpeed(4, {100, 1, 1}), (Shares{1, 2, 1}));
  EXPECT_FALSE(isWorthIt({3, 3, 2}, {2, 3, 3}, {1.02, 1, 1}));
  EXPECT_TRUE(isWorthIt({3, 3, 2}, {2, 3, 3}, {3, 1, 1}));
}

TEST(DealRule, noOtherSharesAreDoneSooner) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> us(1 + random() % 3);
    for (double &one : us)
      one = 1 + double(random() % 1000) / 100;
    const uint32_t count = uint32_t(us.size() + random() % 8);
    auto timeOf = [&](const Shares &shares) {
      double most = 0;
      for (size_t i = 0; i < shares.size(); ++i)
        most = std::max(most, shares[i] * us[i]);
      return most;
    };
    const double found = timeOf(dealBySpeed(count, us));
    Shares shares(us.size(), 1);
    std::function<void(size_t, uint32_t)> tryAll = [&](size_t at, uint32_t left) {
      if (at + 1 == shares.size()) {
        shares[at] = left;
        EXPECT_LE(found, timeOf(shares) + 1e-9);
        return;
      }
      for (shares[at] = 1; shares[at] + (shares.size() - at - 1) <= left; ++shares[at])
        tryAll(at + 1, left - shares[at]);
    };
    tryAll(0, count);
  }
}
