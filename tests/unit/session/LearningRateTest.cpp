// SPDX-License-Identifier: Apache-2.0
// Proves that schedules give PyTorch's factors, and that malformed ones are refused.
#include "runtime/session/LearningRate.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::session;

static double factor(const std::string &text, int64_t epoch) {
  auto schedule = LearningRateSchedule::parse(text);
  EXPECT_TRUE(schedule) << text;
  EXPECT_EQ(LearningRateSchedule::parse(schedule->describe())->factorOf(epoch), schedule->factorOf(epoch));
  return schedule->factorOf(epoch);
}

TEST(LearningRate, constant) { EXPECT_EQ(factor("constant", 1000), 1.0); }

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
}

TEST(LearningRate, malformedSchedulesAreUsageErrors) {
  for (const char *text :
       {"", "linear", "step", "step:gamma=0.5", "step:every=0", "step:every=1.5", "step:every=x", "cosine",
        "cosine:epochs=", "cosine:epochs=3,extra=1", "constant:a=1", "step:every=1,every=2", "cosine:epochs"}) {
    auto schedule = LearningRateSchedule::parse(text);
    ASSERT_FALSE(schedule) << text;
    EXPECT_EQ(schedule.status().kind(), ErrorKind::usage);
  }
}
