// SPDX-License-Identifier: Apache-2.0
// Whole training and inference runs with ranks as threads, and everything that rank 0 reported.
#pragma once

#include "runtime/device/host/HostDevice.h"
#include "runtime/session/Inference.h"
#include "runtime/session/Training.h"
#include "tests/unit/session/ToyModel.h"
#include "tests/unit/transport/InProcessTransport.h"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <thread>

namespace dg::test {

class RecordingReporter final : public session::Reporter {
public:
  void start(const session::StartInfo &info) override { starts.push_back(info); }
  void step(const session::StepInfo &info) override { steps.push_back(info); }
  void epoch(const session::EpochInfo &info) override { epochs.push_back(info); }
  void evaluation(const session::EvaluationInfo &info) override { evaluations.push_back(info); }
  void dealt(const session::DealInfo &info) override { deals.push_back(info); }
  void checkpoint(const session::CheckpointInfo &info) override { checkpoints.push_back(info); }
  void saveFailed(const session::SaveFailedInfo &info) override {
    failedSaves.push_back(info);
    if (onSaveFailed)
      onSaveFailed();
  }
  void end(const session::EndInfo &info) override { ends.push_back(info); }
  std::vector<float> losses() const {
    std::vector<float> result;
    for (const session::StepInfo &info : steps)
      result.push_back(info.loss);
    return result;
  }
  std::vector<session::StartInfo> starts;
  std::vector<session::StepInfo> steps;
  std::vector<session::EpochInfo> epochs;
  std::vector<session::EvaluationInfo> evaluations;
  std::vector<session::DealInfo> deals;
  std::vector<session::CheckpointInfo> checkpoints;
  std::vector<session::SaveFailedInfo> failedSaves;
  std::function<void()> onSaveFailed;
  std::vector<session::EndInfo> ends;
};

struct ThreadedRun {
  explicit ThreadedRun(plan::Plan made) : plan(std::move(made)) {}

  plan::Plan plan;
  uint32_t threads = 1;
  uint64_t stopBeforeStep = 0; ///< 0: never
  RecordingReporter reporter;
  std::vector<Status> failures;

  /// Calls `body` for each rank in its own thread.
  void forEachRank(const std::function<void(const session::RankRun &)> &body) {
    TableLibrary library = toyLibrary();
    int64_t numRanks = plan.mesh.numRanks();
    auto transports = makeInProcessTransports(numRanks);
    std::barrier meet(numRanks);
    std::vector<Status> said(size_t(numRanks), Status::ok());
    std::vector<std::string> parts(static_cast<size_t>(numRanks));
    std::vector<std::thread> ranks;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      ranks.emplace_back([&, rank] {
        ExecutorOptions options;
        options.threads = threads;
        options.leastSharedWork = {};
        options.seed = 1;
        auto executor = Executor::create(plan, plan.mesh.coordinatesOf(rank), makeHostDevice(library),
                                         transports[size_t(rank)].get(), options);
        ASSERT_TRUE(executor) << executor.status().message();
        session::Reporter silent;
        session::RankRun run(plan, rank, **executor, rank == 0 ? static_cast<session::Reporter &>(reporter) : silent);
        run.transport = transports[size_t(rank)].get();
        run.agree = [&, rank](const Status &mine) {
          said[size_t(rank)] = mine;
          meet.arrive_and_wait();
          Status worst = Status::ok();
          for (const Status &status : said)
            if (worst && !status)
              worst = status;
          meet.arrive_and_wait();
          return worst;
        };
        run.gather = [&, rank](const std::string &mine) -> Result<std::vector<std::string>> {
          parts[size_t(rank)] = mine;
          meet.arrive_and_wait();
          std::vector<std::string> all = parts;
          meet.arrive_and_wait();
          return all;
        };
        run.exchange = run.gather;
        run.mayStartStep = [&](uint64_t step) { return stopBeforeStep == 0 || step < stopBeforeStep; };
        body(run);
      });
    for (std::thread &rank : ranks)
      rank.join();
  }

  /// Trains and returns the outcome of rank 0; failures of all ranks are kept.
  session::Outcome train(const session::TrainingOptions &options, const data::Dataset &dataset,
                         const data::Dataset *evalDataset = nullptr, const checkpoint::Checkpoint *resume = nullptr) {
    session::Outcome result = session::Outcome::done;
    std::mutex mutex;
    forEachRank([&](const session::RankRun &run) {
      bool hasPeerFailed = false;
      auto outcome = runTraining(run, options, dataset, evalDataset, resume, hasPeerFailed);
      std::lock_guard lock(mutex);
      if (!outcome)
        failures.push_back(outcome.status());
      else if (run.rank == 0)
        result = *outcome;
    });
    return result;
  }
};

inline data::Dataset toyData(const plan::Plan &plan, int64_t samples, uint64_t seed = 3) {
  data::DataSpecs specs;
  specs.seed = seed;
  specs.sources = {{"x", fmt::format("randn:{}x3", samples)}, {"y", fmt::format("randn:{}", samples)}};
  auto arguments = data::argumentsOf(plan, *plan.findProgram(plan::ProgramKind::train));
  EXPECT_TRUE(arguments);
  auto dataset = data::Dataset::open(*arguments, specs);
  EXPECT_TRUE(dataset) << dataset.status().message();
  return std::move(*dataset);
}

} // namespace dg::test
