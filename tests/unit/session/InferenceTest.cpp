// SPDX-License-Identifier: Apache-2.0
// Proves that results stand in the order of the samples, on any mesh and for any number of samples, and that nothing
// half-written stays.
#include "runtime/data/format/TensorFiles.h"
#include "runtime/support/CounterRandom.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/data/ReadSample.h"
#include "tests/unit/session/ThreadedRun.h"

#include <cstring>
#include <filesystem>

using namespace dg;
using namespace dg::session;
using dg::test::TemporaryFolder;
using dg::test::ThreadedRun;
using dg::test::toyPlan;

static data::Dataset inputs(const plan::Plan &plan, int64_t samples) {
  data::DataSpecs specs;
  specs.sources = {{"x", fmt::format("randn:{}x3", samples)}};
  auto dataset = data::Dataset::open(*data::argumentsOf(plan, *plan.findProgram(plan::ProgramKind::infer)), specs);
  EXPECT_TRUE(dataset) << dataset.status().message();
  return std::move(*dataset);
}

TEST(Inference, rowsFollowTheSamples) {
  for (int64_t samples : {1, 10, 47})
    for (auto [data, microbatches] : {std::pair<int64_t, uint32_t>(1, 1), {3, 2}}) {
      TemporaryFolder folder;
      ThreadedRun run(toyPlan(1, data, 10, microbatches));
      data::Dataset dataset = inputs(run.plan, samples);
      InferenceOptions options;
      options.outputs = {{"p", folder.path("p.npy")}};
      run.forEachRank([&](const RankRun &rank) {
        bool hasPeerFailed = false;
        Status status = runInference(rank, options, dataset, hasPeerFailed);
        ASSERT_TRUE(status) << status.message();
      });
      auto result = data::openNpy(folder.path("p.npy"));
      ASSERT_TRUE(result) << result.status().message();
      ASSERT_EQ(result->shape, (std::vector<int64_t>{samples}));
      for (int64_t i = 0; i < samples; ++i) {
        float x[3], found, expected = 0;
        EXPECT_TRUE(test::readSample(dataset, "x", i, x));
        for (uint64_t k = 0; k < 3; ++k)
          expected += x[k] * (2 * uniformAt(1, streamOf("w"), k) - 1);
        std::memcpy(&found, result->data + i * 4, 4);
        EXPECT_NEAR(found, expected, 1e-6);
      }
      EXPECT_FALSE(std::filesystem::exists(folder.path("p.npy.partial")));
    }
}

/// Infers the outputs on every rank and returns what rank 0 said.
static Status infer(ThreadedRun &run, const data::Dataset &dataset, const InferenceOptions &options) {
  Status first = Status::ok();
  run.forEachRank([&](const RankRun &rank) {
    bool hasPeerFailed = false;
    Status status = runInference(rank, options, dataset, hasPeerFailed);
    if (rank.rank == 0)
      first = status;
  });
  return first;
}

TEST(Inference, whatHasNoRowForEachSampleIsWrittenWhole) {
  // A parameter is the same for any samples and on every rank.
  for (int64_t data : {1, 2}) {
    TemporaryFolder folder;
    ThreadedRun run(toyPlan(1, data, 10, 2));
    plan::Program &program = run.plan.programs.back();
    for (plan::ValueId id = 0; id < run.plan.values.size(); ++id)
      if (run.plan.values[id].name == "w")
        program.outputs.push_back({"w", {id}});
    ASSERT_TRUE(plan::verify(run.plan));
    InferenceOptions options;
    options.outputs = {{"w", folder.path("w.npy")}, {"p", folder.path("p.npy")}};
    Status status = infer(run, inputs(run.plan, 47), options);
    ASSERT_TRUE(status) << status.message();
    auto w = data::openNpy(folder.path("w.npy")), p = data::openNpy(folder.path("p.npy"));
    ASSERT_TRUE(w && p);
    ASSERT_EQ(w->shape, (std::vector<int64_t>{3}));
    EXPECT_EQ(p->shape, (std::vector<int64_t>{47}));
    for (uint64_t k = 0; k < 3; ++k) {
      float found;
      std::memcpy(&found, w->data + k * 4, 4);
      EXPECT_EQ(found, 2 * uniformAt(1, streamOf("w"), k) - 1);
    }
  }
  // A value of the whole batch, as a mean over it, is defined for one batch without padding.
  TemporaryFolder folder;
  ThreadedRun run(toyPlan(1, 1, 10));
  for (plan::Value &value : run.plan.values)
    if (value.name == "p")
      value.sharding[0] = std::nullopt;
  InferenceOptions options;
  options.outputs = {{"p", folder.path("p.npy")}};
  EXPECT_TRUE(infer(run, inputs(run.plan, 10), options));
  EXPECT_TRUE(std::filesystem::exists(folder.path("p.npy")));
  for (int64_t samples : {9, 20}) {
    Status status = infer(run, inputs(run.plan, samples), options);
    ASSERT_FALSE(status);
    EXPECT_NE(status.message().find("no row for each sample"), std::string::npos) << status.message();
  }
  plan::Plan cut = toyPlan(1, 1, 10, 2);
  for (plan::Value &value : cut.values)
    if (value.name == "p")
      value.sharding[0] = std::nullopt;
  EXPECT_NE(checkResults(cut, options, 10).message().find("--microbatches 1"), std::string::npos);
}

TEST(Inference, shapesThatLieAreRefused) {
  auto refused = [](int64_t data, auto change) {
    plan::Plan plan = toyPlan(1, data, 10);
    for (plan::Value &value : plan.values)
      if (value.name == "p")
        change(value);
    InferenceOptions options;
    options.outputs = {{"p", "p.npy"}};
    Status status = plan::verify(plan);
    return status ? checkResults(plan, options, 25) : status;
  };
  EXPECT_TRUE(refused(1, [](plan::Value &) {}));
  // Fewer rows than are fed, more rows in all than a rank has, and rows that are said to be the same on all ranks.
  EXPECT_FALSE(refused(1, [](plan::Value &value) { value.shape[0] = value.globalShape[0] = 4; }));
  EXPECT_FALSE(refused(1, [](plan::Value &value) { value.globalShape[0] = 1000; }));
  EXPECT_FALSE(
      refused(2, [](plan::Value &value) { value.sharding[0] = std::nullopt, value.globalShape = value.shape; }));
  EXPECT_FALSE(refused(1, [](plan::Value &value) { value.kind = plan::ValueKind::scratch, value.shape = {1 << 20}; }));
}

TEST(Inference, aFileThatCannotBeMadeFailsEverywhere) {
  ThreadedRun run(toyPlan(1, 2, 10));
  data::Dataset dataset = inputs(run.plan, 5);
  InferenceOptions options;
  options.outputs = {{"p", "/nonexistent/p.npy"}};
  run.forEachRank([&](const RankRun &rank) {
    bool hasPeerFailed = false;
    Status status = runInference(rank, options, dataset, hasPeerFailed);
    ASSERT_FALSE(status);
    EXPECT_NE(status.message().find("/nonexistent/p.npy"), std::string::npos) << status.message();
  });
}

TEST(Inference, unknownOutputsAreNamed) {
  plan::Plan plan = toyPlan(1, 1, 10);
  InferenceOptions options;
  options.outputs = {{"q", "q.npy"}};
  Status status = checkInference(plan, options);
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("it has p"), std::string::npos) << status.message();
}
