// SPDX-License-Identifier: Apache-2.0
// Proves that results stand in the order of the samples, on any mesh and for any number of samples, and that nothing
// half-written stays.
#include "runtime/data/TensorFiles.h"
#include "runtime/support/CounterRandom.h"
#include "tests/unit/TemporaryFolder.h"
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
  auto dataset = data::Dataset::open(*data::argumentsOf(plan, *plan.findProgram("infer")), specs);
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
        dataset.find("x")->copySample(i, reinterpret_cast<std::byte *>(x));
        for (uint64_t k = 0; k < 3; ++k)
          expected += x[k] * (2 * uniformAt(1, streamOf("w"), k) - 1);
        std::memcpy(&found, result->data + i * 4, 4);
        EXPECT_NEAR(found, expected, 1e-6);
      }
      EXPECT_FALSE(std::filesystem::exists(folder.path("p.npy.partial")));
    }
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
