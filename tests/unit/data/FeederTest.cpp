// SPDX-License-Identifier: Apache-2.0
// Proves that the ranks together are fed each sample of a step exactly once, with weights that sum to one, that each
// knows its number in the step wherever it was dealt to, and that padding is a sample of the step with weight zero.
#include "runtime/data/Feeder.h"
#include "tests/unit/data/ReadSample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

using namespace dg;
using namespace dg::data;

namespace {

plan::Value input(const std::string &name, uint32_t stage, plan::DType type, std::vector<int64_t> shape,
                  uint32_t slots) {
  plan::Value value;
  value.name = name;
  value.stage = stage;
  value.kind = plan::ValueKind::input;
  value.dtype = type;
  value.shape = value.globalShape = std::move(shape);
  value.sharding.resize(value.shape.size());
  value.sharding[0] = plan::Axis::data;
  value.slots = slots;
  return value;
}

/// x on stage 0, y and the weights on stage 1.
plan::Plan makePlan(int64_t batch, uint32_t microbatches, int64_t dataRanks) {
  plan::Plan plan;
  plan.mesh.sizes = {2, dataRanks, 1};
  int64_t rows = rowsNeeded(batch, {microbatches, dataRanks});
  plan.values = {input("x", 0, plan::DType::f32, {rows, 2}, microbatches),
                 input("y", 1, plan::DType::i64, {rows}, microbatches),
                 input("sample_weight", 1, plan::DType::f32, {rows}, microbatches),
                 input("sample_index", 1, plan::DType::i64, {rows}, microbatches)};
  plan::Program program;
  program.kind = plan::ProgramKind::train;
  program.batch = batch;
  program.microbatches = microbatches;
  program.inputs = {{"x", {0}}, {"y", {1}}, {"sample_weight", {2}}, {"sample_index", {3}}};
  plan.programs = {program};
  return plan;
}

Dataset openSet(const plan::Plan &plan, int64_t samples) {
  DataSpecs specs;
  specs.sources = {{"x", fmt::format("randn:{}x2", samples)}, {"y", fmt::format("randint:1000000:{}", samples)}};
  auto arguments = argumentsOf(plan, plan.programs[0]);
  EXPECT_TRUE(arguments);
  auto dataset = Dataset::open(*arguments, specs);
  EXPECT_TRUE(dataset) << dataset.status().message();
  return std::move(*dataset);
}

/// One rank's memory: every slot of every value, full of noise before the step.
struct Memory {
  std::map<std::pair<plan::ValueId, uint32_t>, std::vector<std::byte>> slots;
  Feeder::BufferOf bufferOf(const plan::Plan &plan) {
    return [this, &plan](plan::ValueId id, uint32_t microbatch) -> void * {
      const plan::Value &value = plan.values[id];
      int64_t bytes = plan::sizeOf(value.dtype);
      for (int64_t dimension : value.shape)
        bytes *= dimension;
      auto &slot = slots[{id, microbatch}];
      slot.assign(size_t(bytes), std::byte(0xcd));
      return slot.data();
    };
  }
  template <typename T> T at(plan::ValueId id, uint32_t microbatch, size_t index) const {
    return reinterpret_cast<const T *>(slots.at({id, microbatch}).data())[index];
  }
};

void checkStep(int64_t batch, uint32_t microbatches, int64_t dataRanks, int64_t samples) {
  plan::Plan plan = makePlan(batch, microbatches, dataRanks);
  Dataset dataset = openSet(plan, 64);
  std::vector<int64_t> step(static_cast<size_t>(samples));
  std::iota(step.begin(), step.end(), int64_t(5));
  int64_t rows = plan.values[0].shape[0], seen = 0;
  double weights = 0;
  for (uint32_t m = 0; m < microbatches; ++m)
    for (int64_t rank = 0; rank < dataRanks; ++rank) {
      Memory first, last;
      auto feedFirst = Feeder::create(plan, plan.programs[0], dataset, {0, rank, 0}, first.bufferOf(plan));
      auto feedLast = Feeder::create(plan, plan.programs[0], dataset, {1, rank, 0}, last.bufferOf(plan));
      ASSERT_TRUE(feedFirst && feedLast);
      ASSERT_TRUE(feedFirst->fill(step));
      ASSERT_TRUE(feedLast->fill(step));
      ASSERT_EQ(first.slots.size(), microbatches) << "a stage is fed only what it has";
      for (int64_t row = 0; row < rows; ++row) {
        float weight = last.at<float>(2, m, size_t(row)), expectedX[2] = {0, 0};
        int64_t expectedY = 0, number = last.at<int64_t>(3, m, size_t(row));
        ASSERT_TRUE(number >= 0 && number < samples);
        if (weight != 0) {
          ASSERT_EQ(weight, float(1.0 / double(samples)));
          ASSERT_EQ(number, seen++);
        }
        int64_t sample = step[size_t(number)];
        EXPECT_TRUE(test::readSample(dataset, "x", sample, expectedX));
        EXPECT_TRUE(test::readSample(dataset, "y", sample, &expectedY));
        weights += double(weight);
        ASSERT_EQ(first.at<float>(0, m, size_t(row) * 2), expectedX[0]);
        ASSERT_EQ(first.at<float>(0, m, size_t(row) * 2 + 1), expectedX[1]);
        ASSERT_EQ(last.at<int64_t>(1, m, size_t(row)), expectedY);
      }
    }
  EXPECT_EQ(seen, samples);
  EXPECT_NEAR(weights, 1.0, 1e-6);
}

} // namespace

TEST(Feeder, unevenStepsAreFedOnceOverall) {
  checkStep(10, 1, 4, 10);
  checkStep(10, 3, 4, 10);
  checkStep(10, 1, 4, 2); // fewer samples than ranks
  checkStep(8, 2, 2, 5);
  checkStep(16, 4, 1, 16);
}

TEST(Feeder, aSecondStepLeavesNothingOfTheFirst) {
  plan::Plan plan = makePlan(4, 1, 1);
  Dataset dataset = openSet(plan, 8);
  Memory memory;
  auto feeder = Feeder::create(plan, plan.programs[0], dataset, {1, 0, 0}, memory.bufferOf(plan));
  ASSERT_TRUE(feeder);
  ASSERT_TRUE(feeder->fill(std::vector<int64_t>{0, 1, 2, 3}));
  ASSERT_TRUE(feeder->fill(std::vector<int64_t>{4}));
  EXPECT_EQ(memory.at<float>(2, 0, 0), 1.0f);
  int64_t only = 0;
  EXPECT_TRUE(test::readSample(dataset, "y", 4, &only));
  for (size_t row = 1; row < 4; ++row) {
    EXPECT_EQ(memory.at<float>(2, 0, row), 0.0f);
    EXPECT_EQ(memory.at<int64_t>(1, 0, row), only);
  }
}

TEST(Feeder, aStepWithoutSamplesIsRefused) {
  plan::Plan plan = makePlan(4, 1, 1);
  Dataset dataset = openSet(plan, 8);
  Memory memory;
  auto feeder = Feeder::create(plan, plan.programs[0], dataset, {1, 0, 0}, memory.bufferOf(plan));
  ASSERT_TRUE(feeder);
  EXPECT_NE(feeder->fill({}).message().find("a step of 0 samples"), std::string::npos);
}

TEST(Feeder, plansThatCannotHoldTheirBatchAreRefused) {
  plan::Plan plan = makePlan(10, 2, 2);
  Dataset dataset = openSet(plan, 8);
  Memory memory;
  auto refused = [&](plan::Plan bad, const std::string &what) {
    auto feeder = Feeder::create(bad, bad.programs[0], dataset, {0, 0, 0}, memory.bufferOf(bad));
    ASSERT_FALSE(feeder);
    EXPECT_NE(feeder.status().message().find(what), std::string::npos) << feeder.status().message();
  };
  plan::Plan bad = plan;
  bad.values[0].shape[0] = 2;
  refused(bad, "holds 2 rows");
  bad = plan;
  bad.values[0].slots = 1;
  refused(bad, "1 slots");
  bad = plan;
  bad.values[0].shape[1] = 1;
  refused(bad, "dimension 1");
}

TEST(Feeder, aValueThatDoesNotFitNamesItsSample) {
  plan::Plan plan = makePlan(4, 1, 1);
  plan.values[1].dtype = plan::DType::u8;
  Dataset dataset = openSet(plan, 8);
  Memory memory;
  auto feeder = Feeder::create(plan, plan.programs[0], dataset, {1, 0, 0}, memory.bufferOf(plan));
  ASSERT_TRUE(feeder);
  Status status = feeder->fill(std::vector<int64_t>{6});
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("sample 6"), std::string::npos) << status.message();
}
