// SPDX-License-Identifier: Apache-2.0
// Proves that schedules give PyTorch's factors, by steps and by epochs, alone and joined, and that malformed ones are
// refused.
#include "runtime/session/rules/LearningRate.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::session;

/// In an epoch that has one step, so that steps and epochs are the same.
static double factor(const std::string &text, int64_t epoch) {
  auto schedule = LearningRateSchedule::parse(text);
  EXPECT_TRUE(schedule) << schedule.status().message();
  const TrainingPoint at = {epoch, epoch, 1};
  EXPECT_EQ(LearningRateSchedule::parse(schedule->describe())->factorAt(at), schedule->factorAt(at));
  return schedule->factorAt(at);
}

TEST(LearningRate, constant) {
  EXPECT_EQ(factor("constant", 1000), 1.0);
  EXPECT_EQ(LearningRateSchedule().factorAt({1000, 7, 150}), 1.0);
}

TEST(LearningRate, stepFallsAfterEveryFewEpochs) {
  EXPECT_EQ(factor("step:every=3,gamma=0.5", 0), 1.0);
  EXPECT_EQ(factor("step:every=3,gamma=0.5", 2), 1.0);
  EXPECT_EQ(factor("step:every=3,gamma=0.5", 3), 0.5);
  EXPECT_EQ(factor("step:every=3,gamma=0.5", 9), 0.125);
  EXPECT_DOUBLE_EQ(factor("step:every=1", 1), 0.1);
}

TEST(LearningRate, cosineIsThatOfCosineAnnealing) {
  // torch.optim.lr_scheduler.CosineAnnealingLR(lr 1, T_max 5): rates of epochs 0 to 5.
  const double expected[] = {1.0, 0.9045084971874737, 0.6545084971874737, 0.34549150281252633, 0.09549150281252627,
                             0.0};
  for (int64_t epoch = 0; epoch <= 5; ++epoch)
    EXPECT_NEAR(factor("cosine:epochs=5", epoch), expected[epoch], 1e-15);
  EXPECT_NEAR(factor("cosine:epochs=5", 9), 0, 1e-15) << "it stays down";
}

TEST(LearningRate, eachStepHasTheRateOfPyTorch) {
  // The rates of torch.optim.lr_scheduler with lr 1, one for each call of optimizer.step, printed by PyTorch 2.15.
  const struct {
    const char *text;
    std::vector<double> factors;
  } cases[] = {
      // LinearLR(start_factor=0.25, total_iters=4)
      {"warmup:steps=4", {0.25, 0.4375, 0.625, 0.8125, 1.0, 1.0, 1.0}},
      // LinearLR(start_factor=1, end_factor=0.2, total_iters=5)
      {"linear:steps=5,to=0.2", {1.0, 0.84, 0.68, 0.52, 0.36, 0.2, 0.2}},
      // PolynomialLR(total_iters=5, power=2)
      {"polynomial:steps=5,power=2", {1.0, 0.64, 0.36, 0.16, 0.04, 0.0, 0.0}},
      // OneCycleLR(max_lr=1, total_steps=10)
      {"one-cycle:steps=10",
       {0.04, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631, 0.6112620219362893, 0.38874197806371075,
        0.18825834605023697, 0.049519367986526286, 4e-06}},
      // OneCycleLR(max_lr=1, total_steps=7, pct_start=0.5, div_factor=10, final_div_factor=10)
      {"one-cycle:steps=7,rise=0.5,from=0.1,to=0.01",
       {0.1, 0.41094235253127365, 0.9140576474687263, 0.9509795896116974, 0.6151478623083756, 0.19637254807992693,
        0.01}},
      // SequentialLR([LinearLR(start_factor=1/3, total_iters=3), CosineAnnealingLR(T_max=5, eta_min=0.1)], [3])
      {"warmup:steps=3+cosine:steps=5,to=0.1",
       {1.0 / 3, 0.5555555555555556, 0.7777777777777778, 1.0, 0.9140576474687263, 0.6890576474687263,
        0.41094235253127365, 0.1859423525312737, 0.1, 0.1}},
      // StepLR(2, 0.5)
      {"step:every=2steps,gamma=0.5", {1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125}},
  };
  for (const auto &[text, factors] : cases) {
    auto schedule = LearningRateSchedule::parse(text);
    ASSERT_TRUE(schedule) << schedule.status().message();
    for (size_t step = 0; step < factors.size(); ++step)
      EXPECT_NEAR(schedule->factorAt({int64_t(step), int64_t(step) / 4, 4}), factors[step], 1e-14)
          << text << ", step " << step;
  }
}

TEST(LearningRate, partsGoOnFromWhereTheOneBeforeEnded) {
  auto schedule = LearningRateSchedule::parse("constant:steps=3+linear:steps=4,to=0.5+step:every=1,gamma=0.1");
  ASSERT_TRUE(schedule) << schedule.status().message();
  auto at = [&](int64_t step) { return schedule->factorAt({step, step / 5, 5}); };
  EXPECT_EQ(at(2), 1);
  EXPECT_EQ(at(3), 1);
  EXPECT_EQ(at(5), 0.75);
  // The last part begins with step 7, in the second epoch: its own first one.
  EXPECT_EQ(at(7), 0.5);
  EXPECT_EQ(at(9), 0.5);
  EXPECT_DOUBLE_EQ(at(10), 0.05);
  EXPECT_DOUBLE_EQ(at(15), 0.005);
  auto twice = LearningRateSchedule::parse("step:every=1,gamma=0.5,epochs=2+constant");
  EXPECT_EQ(twice->factorAt({500, 5, 100}), 0.25);
}

TEST(LearningRate, aPlateauIsThatOfReduceLROnPlateau) {
  const double losses[] = {3.0, 2.0, 2.0, 1.9999, 2.5, 2.5, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 0.5, 0.6, 0.6, 0.6, 0.6};
  const struct {
    const char *text;
    std::vector<double> factors;
  } cases[] = {
      // ReduceLROnPlateau(factor=0.5, patience=1, cooldown=1) after each loss.
      {"plateau:factor=0.5,patience=1,cooldown=1",
       {1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625}},
      // ReduceLROnPlateau(factor=0.1, patience=0, min_lr=0.05)
      {"plateau:patience=0,min=0.05",
       {1.0, 1.0, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05}},
  };
  for (const auto &[text, factors] : cases) {
    auto schedule = LearningRateSchedule::parse(std::string("warmup:steps=10+") + text);
    ASSERT_TRUE(schedule) << schedule.status().message();
    EXPECT_TRUE(schedule->watchesEvaluations());
    checkpoint::Plateau plateau;
    schedule->observe(0.001, {9, 0, 100}, plateau);
    EXPECT_EQ(plateau, checkpoint::Plateau()) << "it has not begun";
    for (size_t i = 0; i < factors.size(); ++i) {
      schedule->observe(losses[i], {10 + int64_t(i), 0, 100}, plateau);
      EXPECT_DOUBLE_EQ(plateau.factor, factors[i]) << text << ", evaluation " << i;
    }
  }
  EXPECT_FALSE(LearningRateSchedule::parse("cosine:epochs=2")->watchesEvaluations());
}

TEST(LearningRate, knowsWhereItEnds) {
  auto endOf = [](const char *text) { return LearningRateSchedule::parse(text)->stepOfEnd(10); };
  EXPECT_EQ(endOf("warmup:steps=500"), 500);
  EXPECT_EQ(endOf("warmup:steps=5+cosine:epochs=3"), 30) << "epochs are counted from the one in which it begins";
  EXPECT_EQ(endOf("warmup:steps=5+cosine:steps=20"), 25);
  for (const char *text : {"constant", "warmup:steps=5+constant", "constant:steps=50", "step:every=3"})
    EXPECT_FALSE(endOf(text)) << text;
}

TEST(LearningRate, malformedSchedulesAreUsageErrors) {
  for (const char *text : {"",
                           "exponential",
                           "step",
                           "step:gamma=0.5",
                           "step:every=0",
                           "step:every=1.5",
                           "step:every=x",
                           "cosine",
                           "cosine:epochs=",
                           "cosine:epochs=3,extra=1",
                           "constant:a=1",
                           "step:every=1,every=2",
                           "cosine:epochs",
                           "step:every=3hours",
                           "warmup:steps=5,epochs=5",
                           "warmup",
                           "linear:to=1",
                           "polynomial:steps=5",
                           "polynomial:steps=5,power=-1",
                           "one-cycle:steps=5,rise=2",
                           "plateau:factor=2",
                           "plateau:steps=5",
                           "plateau:patience=1.5",
                           "plateau:patience=2+constant",
                           "constant+cosine:steps=3",
                           "warmup:steps=5+",
                           "+constant",
                           "warmup:steps=5++constant",
                           "cosine:steps=nan",
                           "linear:steps=1e99",
                           "cosine:steps=5,to=inf"}) {
    auto schedule = LearningRateSchedule::parse(text);
    ASSERT_FALSE(schedule) << text;
    EXPECT_EQ(schedule.status().kind(), ErrorKind::usage);
    EXPECT_NE(schedule.status().message().find("expected"), std::string::npos) << schedule.status().message();
  }
}
