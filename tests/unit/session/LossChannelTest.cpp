// SPDX-License-Identifier: Apache-2.0
// Proves that rank 0 gets the loss of every step in order, however far the last stage and rank 0 run apart, and that a
// lost peer ends in a message.
#include "runtime/session/report/LossChannel.h"
#include "tests/unit/transport/InProcessTransport.h"

#include <gtest/gtest.h>

#include <thread>

using namespace dg;
using namespace dg::session;

static plan::Plan twoStages() {
  plan::Plan plan;
  plan.mesh.sizes = {2, 2, 1};
  return plan;
}

TEST(LossChannel, lossesArriveInOrder) {
  plan::Plan plan = twoStages();
  auto transports = makeInProcessTransports(4);
  std::vector<float> seen;
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      LossChannel channel(plan, rank, transports[size_t(rank)].get(), std::chrono::seconds(20),
                          [&](const StepInfo &info) {
                            seen.push_back(info.loss + 1000.0f * float(info.step));
                            EXPECT_EQ(info.gradientNorm, info.loss + 0.5f);
                          });
      EXPECT_EQ(channel.isSource(), rank == 2);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        for (int64_t step = 0; step < 100; ++step) {
          StepInfo info;
          info.step = epoch * 100 + step;
          info.loss = rank == 2 ? float(info.step) : -1;
          info.gradientNorm = info.loss + 0.5f;
          ASSERT_TRUE(channel.push(info));
        }
        ASSERT_TRUE(channel.drain());
      }
    });
  for (std::thread &rank : ranks)
    rank.join();
  ASSERT_EQ(seen.size(), 300u);
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(seen[i], 1001.0f * float(i));
}

TEST(LossChannel, oneStageNeedsNoTransport) {
  plan::Plan plan;
  int count = 0;
  LossChannel channel(plan, 0, nullptr, std::chrono::seconds(1), [&](const StepInfo &) { ++count; });
  ASSERT_TRUE(channel.push({}));
  EXPECT_EQ(count, 1);
  ASSERT_TRUE(channel.drain());
}

TEST(LossChannel, silenceHasADeadline) {
  plan::Plan plan = twoStages();
  auto transports = makeInProcessTransports(4);
  LossChannel channel(plan, 0, transports[0].get(), std::chrono::milliseconds(20), [](const StepInfo &) {});
  ASSERT_TRUE(channel.push({}));
  Status status = channel.drain();
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
}
