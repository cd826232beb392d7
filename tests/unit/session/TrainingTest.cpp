// SPDX-License-Identifier: Apache-2.0
// Proves that the loop trains every sample once an epoch on any mesh, as plain arithmetic says; that stopping and
// resuming gives the same bits as not stopping; and that evaluation is the mean over samples.
#include "runtime/session/Evaluation.h"
#include "runtime/support/CounterRandom.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/data/ReadSample.h"
#include "tests/unit/session/ThreadedRun.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>

using namespace dg;
namespace fs = std::filesystem;
using namespace dg::session;
using dg::test::TemporaryFolder;
using dg::test::ThreadedRun;
using dg::test::toyData;
using dg::test::toyPlan;

namespace {

TrainingOptions optionsOf(int64_t epochs, int64_t steps = 0) {
  TrainingOptions options;
  options.epochs = epochs;
  options.steps = steps;
  options.learningRate = 0.05;
  options.schedule = *LearningRateSchedule::parse("step:every=1,gamma=0.5");
  options.seed = 9;
  return options;
}

/// The losses that plain double arithmetic gives: the oracle.
std::vector<double> expectedLosses(const data::Dataset &dataset, const TrainingOptions &options, int64_t batch) {
  double w[3], momentum[3] = {0, 0, 0};
  for (uint64_t k = 0; k < 3; ++k)
    w[k] = double(2 * uniformAt(1, streamOf("w"), k) - 1);
  std::vector<double> losses;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const data::SampleOrder order(dataset.numSamples(), options.shuffle, options.seed, epoch);
    const size_t numSamples = size_t(dataset.numSamples());
    for (size_t begin = 0; begin < numSamples; begin += size_t(batch)) {
      size_t end = std::min(numSamples, begin + size_t(batch));
      if (options.dropLast && end - begin < size_t(batch))
        break;
      double loss = 0, gradient[3] = {0, 0, 0};
      for (size_t i = begin; i < end; ++i) {
        float x[3], y;
        EXPECT_TRUE(test::readSample(dataset, "x", order[int64_t(i)], x));
        EXPECT_TRUE(test::readSample(dataset, "y", order[int64_t(i)], &y));
        double error = -double(y);
        for (int k = 0; k < 3; ++k)
          error += double(x[k]) * w[k];
        loss += error * error / double(end - begin);
        for (int k = 0; k < 3; ++k)
          gradient[k] += 2 * error * double(x[k]) / double(end - begin);
      }
      const int64_t step = int64_t(losses.size()), perEpoch = (dataset.numSamples() + batch - 1) / batch;
      double rate = options.learningRate * options.schedule.factorAt({step, epoch, perEpoch});
      losses.push_back(loss);
      for (int k = 0; k < 3; ++k) {
        momentum[k] = 0.5 * momentum[k] + gradient[k];
        w[k] -= rate * momentum[k];
      }
    }
  }
  return losses;
}

void expectClose(const std::vector<float> &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(double(found[i]), expected[i], 1e-5 * expected[i]) << "step " << i + 1;
}

} // namespace

TEST(Training, everyMeshGivesTheLossesOfPlainArithmetic) {
  struct {
    int64_t pipe, data, batch;
    uint32_t microbatches;
  } cases[] = {{1, 1, 10, 1}, {1, 4, 10, 1}, {1, 2, 10, 3}, {2, 1, 10, 1}, {2, 1, 10, 4}, {2, 2, 10, 2}, {1, 3, 7, 1}};
  for (const auto &c : cases) {
    ThreadedRun run(toyPlan(c.pipe, c.data, c.batch, c.microbatches));
    Status verified = plan::verify(run.plan);
    ASSERT_TRUE(verified) << verified.message();
    data::Dataset dataset = toyData(run.plan, 53); // a last batch of 3 or 4
    TrainingOptions options = optionsOf(3);
    EXPECT_EQ(run.train(options, dataset), Outcome::done);
    ASSERT_TRUE(run.failures.empty()) << run.failures[0].message();
    expectClose(run.reporter.losses(), expectedLosses(dataset, options, c.batch));
    ASSERT_EQ(run.reporter.epochs.size(), 3u);
    for (const EpochInfo &epoch : run.reporter.epochs)
      EXPECT_EQ(epoch.samples, 53);
    EXPECT_EQ(run.reporter.ends.size(), 1u);
  }
}

TEST(Training, dropLastLeavesTheRestOut) {
  ThreadedRun run(toyPlan(1, 2, 10));
  data::Dataset dataset = toyData(run.plan, 53);
  TrainingOptions options = optionsOf(2);
  options.dropLast = true;
  run.train(options, dataset);
  expectClose(run.reporter.losses(), expectedLosses(dataset, options, 10));
  EXPECT_EQ(run.reporter.epochs[0].samples, 50);
  TemporaryFolder folder;
  data::Dataset few = toyData(run.plan, 9);
  run.train(options, few);
  ASSERT_EQ(run.failures.size(), 2u);
  EXPECT_EQ(run.failures[0].kind(), ErrorKind::usage);
}

TEST(Training, theSameBitsTwiceAndForAnyNumberOfThreads) {
  std::vector<std::vector<float>> losses;
  for (uint32_t threads : {1, 1, 2}) {
    ThreadedRun run(toyPlan(1, 2, 10));
    run.threads = threads;
    data::Dataset dataset = toyData(run.plan, 53);
    run.train(optionsOf(3), dataset);
    losses.push_back(run.reporter.losses());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(Training, stoppingAndResumingChangesNoBit) {
  ThreadedRun whole(toyPlan(2, 2, 10, 2));
  data::Dataset dataset = toyData(whole.plan, 53);
  whole.train(optionsOf(3), dataset, &dataset);
  std::vector<float> expected = whole.reporter.losses();
  ASSERT_EQ(expected.size(), 18u);
  // Six steps of training and six of evaluation in each epoch.
  for (uint64_t stop = 1; stop <= 36; ++stop) {
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(3);
    options.checkpointDirectory = folder.path("ckpt");
    ThreadedRun first(whole.plan), second(whole.plan);
    first.stopBeforeStep = stop;
    EXPECT_EQ(first.train(options, dataset, &dataset), Outcome::stopped);
    ASSERT_TRUE(first.failures.empty()) << first.failures[0].message();
    auto checkpoint = checkpoint::Checkpoint::open(folder.path("ckpt"));
    ASSERT_TRUE(checkpoint) << checkpoint.status().message();
    ASSERT_TRUE(checkpoint->check(second.plan, checkpoint::Purpose::training));
    ASSERT_TRUE(checkResume(checkpoint->state(), options, 53));
    EXPECT_EQ(second.train(options, dataset, &dataset, &*checkpoint), Outcome::done);
    ASSERT_TRUE(second.failures.empty()) << second.failures[0].message();
    std::vector<float> joined = first.reporter.losses(), rest = second.reporter.losses();
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, expected) << "stopped before step " << stop;
    ASSERT_EQ(first.reporter.epochs.size() + second.reporter.epochs.size(), 3u);
    EXPECT_EQ(second.reporter.epochs.back().meanLoss, whole.reporter.epochs.back().meanLoss);
    ASSERT_EQ(first.reporter.evaluations.size() + second.reporter.evaluations.size(), 3u);
    EXPECT_EQ(second.reporter.evaluations.back().loss, whole.reporter.evaluations.back().loss);
  }
}

/// A rate that falls whenever an evaluation is no better, so that it depends on all evaluations before.
static TrainingOptions watchful(int64_t epochs) {
  TrainingOptions options = optionsOf(epochs);
  options.learningRate = 0.4; // too much: the loss goes up and down
  options.schedule = *LearningRateSchedule::parse("warmup:steps=4+plateau:factor=0.5,patience=0");
  return options;
}

TEST(Training, aPlateauIsTheSameOnEveryMesh) {
  std::vector<std::vector<double>> rates;
  for (auto [pipe, data] : {std::pair<int64_t, int64_t>(1, 1), {1, 2}, {2, 2}}) {
    ThreadedRun run(toyPlan(pipe, data, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    run.train(watchful(6), dataset, &dataset);
    ASSERT_TRUE(run.failures.empty()) << run.failures[0].message();
    rates.emplace_back();
    for (const StepInfo &step : run.reporter.steps)
      rates.back().push_back(step.learningRate);
  }
  EXPECT_EQ(rates[0].front(), 0.1) << "a quarter: the first of four steps";
  EXPECT_LT(rates[0].back(), 0.4);
  EXPECT_EQ(rates[1], rates[0]);
  EXPECT_EQ(rates[2], rates[0]);
}

TEST(Training, aPlateauIsResumed) {
  ThreadedRun whole(toyPlan(2, 2, 10));
  data::Dataset dataset = toyData(whole.plan, 53);
  whole.train(watchful(5), dataset, &dataset);
  for (uint64_t stop = 5; stop <= 60; stop += 5) {
    TemporaryFolder folder;
    TrainingOptions options = watchful(5);
    options.checkpointDirectory = folder.path("ckpt");
    ThreadedRun first(whole.plan), second(whole.plan);
    first.stopBeforeStep = stop;
    EXPECT_EQ(first.train(options, dataset, &dataset), Outcome::stopped);
    auto checkpoint = checkpoint::Checkpoint::open(folder.path("ckpt"));
    ASSERT_TRUE(checkpoint) << checkpoint.status().message();
    EXPECT_EQ(second.train(options, dataset, &dataset, &*checkpoint), Outcome::done);
    std::vector<float> joined = first.reporter.losses(), rest = second.reporter.losses();
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, whole.reporter.losses()) << "stopped before step " << stop;
    EXPECT_EQ(second.reporter.epochs.back().learningRate, whole.reporter.epochs.back().learningRate);
  }
}

TEST(Training, anEvaluationThatWasStoppedIsRunOnResume) {
  // The last one of --steps, inside an epoch and at its end.
  for (int64_t steps : {8, 12}) {
    ThreadedRun whole(toyPlan(1, 2, 10));
    data::Dataset dataset = toyData(whole.plan, 53);
    whole.train(optionsOf(0, steps), dataset, &dataset);
    ASSERT_EQ(whole.reporter.evaluations.size(), 2u);
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(0, steps);
    options.checkpointDirectory = folder.path("ckpt");
    ThreadedRun first(whole.plan), second(whole.plan);
    first.stopBeforeStep = uint64_t(steps) + 6 + 3;
    EXPECT_EQ(first.train(options, dataset, &dataset), Outcome::stopped);
    EXPECT_EQ(first.reporter.evaluations.size(), 1u);
    ASSERT_EQ(first.reporter.ends.size(), 1u);
    EXPECT_TRUE(first.reporter.ends[0].stopped);
    auto checkpoint = checkpoint::Checkpoint::open(folder.path("ckpt"));
    ASSERT_TRUE(checkpoint) << checkpoint.status().message();
    EXPECT_EQ(checkpoint->state().step, steps);
    EXPECT_EQ(second.train(options, dataset, &dataset, &*checkpoint), Outcome::done);
    EXPECT_TRUE(second.reporter.steps.empty());
    ASSERT_EQ(second.reporter.evaluations.size(), 1u);
    EXPECT_EQ(second.reporter.evaluations[0].loss, whole.reporter.evaluations[1].loss);
    EXPECT_EQ(second.reporter.evaluations[0].epoch, whole.reporter.evaluations[1].epoch);
    EXPECT_EQ(first.reporter.epochs.size() + second.reporter.epochs.size(), whole.reporter.epochs.size());
  }
}

TEST(Training, anIncompleteRestoreIsSeenInTheLosses) {
  // What the equality above would catch if the optimizer's state were lost: the momentum is set to zero after the
  // restore.
  ThreadedRun whole(toyPlan(1, 1, 10));
  data::Dataset dataset = toyData(whole.plan, 53);
  whole.train(optionsOf(3), dataset);
  TemporaryFolder folder;
  TrainingOptions options = optionsOf(3);
  options.checkpointDirectory = folder.path("ckpt");
  ThreadedRun first(whole.plan), second(whole.plan);
  first.stopBeforeStep = 9;
  first.train(options, dataset);
  for (plan::Value &value : second.plan.values)
    if (value.kind == plan::ValueKind::state)
      value.kind = plan::ValueKind::scratch;
  auto checkpoint = checkpoint::Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(checkpoint);
  EXPECT_FALSE(checkpoint->check(second.plan, checkpoint::Purpose::training)) << "refused before it runs";
  second.train(options, dataset, nullptr, &*checkpoint);
  std::vector<float> expected = whole.reporter.losses(), found = second.reporter.losses();
  ASSERT_EQ(found.size(), expected.size() - 8);
  EXPECT_EQ(found[0], expected[8]);
  EXPECT_NE(found[1], expected[9]);
}

TEST(Training, anotherPlanContinuesACheckpoint) {
  TemporaryFolder folder;
  TrainingOptions options = optionsOf(2);
  options.checkpointDirectory = folder.path("ckpt");
  ThreadedRun four(toyPlan(1, 4, 10)), whole(toyPlan(1, 1, 10)), pipeline(toyPlan(2, 2, 10, 2));
  data::Dataset dataset = toyData(four.plan, 53);
  four.train(options, dataset);
  auto checkpoint = checkpoint::Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->state().epoch, 2);
  options.epochs = 4;
  pipeline.train(options, dataset, nullptr, &*checkpoint);
  ASSERT_TRUE(pipeline.failures.empty()) << pipeline.failures[0].message();
  std::vector<float> found = four.reporter.losses(), rest = pipeline.reporter.losses();
  found.insert(found.end(), rest.begin(), rest.end());
  expectClose(found, expectedLosses(dataset, options, 10));
}

TEST(Training, checkpointsComeWhenTheyAreDueAndAtTheEnd) {
  auto stepsOf = [](Interval every) {
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(3); // 6 steps an epoch
    options.checkpointDirectory = folder.path("ckpt");
    options.checkpointEvery = every;
    ThreadedRun run(toyPlan(1, 1, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    run.train(options, dataset);
    EXPECT_TRUE(run.failures.empty());
    EXPECT_EQ(run.reporter.checkpoints.size(), checkpoint::stepsIn(folder.path("ckpt")).size());
    return checkpoint::stepsIn(folder.path("ckpt"));
  };
  EXPECT_EQ(stepsOf({}), (std::vector<int64_t>{18}));
  EXPECT_EQ(stepsOf({2, 0}), (std::vector<int64_t>{12, 18}));
  EXPECT_EQ(stepsOf({0, 4}), (std::vector<int64_t>{4, 8, 12, 16, 18}));
  EXPECT_EQ(stepsOf({0, 6}), (std::vector<int64_t>{6, 12, 18}));
}

// Saves behind steps write what a run that ends at their step writes.
TEST(Training, aSaveBehindStepsIsThatOfItsStep) {
  auto read = [](const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  for (auto [pipe, data] : {std::pair<int64_t, int64_t>(1, 1), {2, 2}}) {
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(0, 18);
    options.checkpointDirectory = folder.path("behind");
    options.checkpointEvery = {0, 1}; // each waits for the one before it
    ThreadedRun run(toyPlan(pipe, data, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    run.train(options, dataset);
    ASSERT_TRUE(run.failures.empty()) << run.failures[0].message();
    EXPECT_GT(run.reporter.starts[0].copyBytes, 0u);
    for (int64_t step : {1, 6, 13, 18}) {
      ThreadedRun ending(toyPlan(pipe, data, 10));
      options.steps = step, options.checkpointEvery = {};
      options.checkpointDirectory = folder.path(fmt::format("at{}", step));
      ending.train(options, dataset);
      ASSERT_TRUE(ending.failures.empty()) << ending.failures[0].message();
      EXPECT_EQ(ending.reporter.starts[0].copyBytes, 0u);
      for (const char *file : {"/model.safetensors", "/manifest.json"}) {
        const std::string name = "/" + checkpoint::nameOfStep(step) + file, wanted = read(folder.path("behind") + name);
        EXPECT_FALSE(wanted.empty());
        EXPECT_TRUE(wanted == read(options.checkpointDirectory + name)) << name;
      }
    }
  }
}

namespace {

/// While it lives no file may grow beyond a few bytes, as on a full disk.
class NoRoom {
public:
  NoRoom() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{16, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~NoRoom() { end(); }
  void end() const { setrlimit(RLIMIT_FSIZE, &before); }

private:
  rlimit before{};
};

} // namespace

TEST(Training, aFailedSaveIsTriedAgainAndTheTrainingGoesOn) {
  for (int64_t numRanks : {1, 2}) {
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(3); // 18 steps
    options.checkpointDirectory = folder.path("ckpt");
    options.checkpointEvery = {0, 4};
    ThreadedRun run(toyPlan(1, numRanks, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    NoRoom noRoom;
    run.reporter.onSaveFailed = [&] {
      if (run.reporter.failedSaves.back().isMissing)
        noRoom.end();
    };
    run.train(options, dataset);
    ASSERT_TRUE(run.failures.empty()) << run.failures[0].message();
    ASSERT_EQ(run.reporter.failedSaves.size(), 2u);
    for (const SaveFailedInfo &failed : run.reporter.failedSaves) {
      EXPECT_EQ(failed.step, 4);
      EXPECT_NE(failed.message.find("step-000004"), std::string::npos) << failed.message;
    }
    EXPECT_FALSE(run.reporter.failedSaves[0].isMissing);
    EXPECT_EQ(run.reporter.failedSaves[1].left, 1);
    EXPECT_EQ(checkpoint::stepsIn(folder.path("ckpt")), (std::vector<int64_t>{8, 12, 16, 18}));
    EXPECT_EQ(run.reporter.steps.size(), 18u);
  }
}

TEST(Training, soManyMissingSavesEndTheRun) {
  for (auto [maxLost, lastStep] : {std::pair<int64_t, int64_t>(1, 4), {2, 8}, {100, 18}}) {
    TemporaryFolder folder;
    TrainingOptions options = optionsOf(3);
    options.checkpointDirectory = folder.path("ckpt");
    options.checkpointEvery = {0, 4};
    options.maxLost = maxLost;
    ThreadedRun run(toyPlan(1, 2, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    NoRoom noRoom;
    run.train(options, dataset);
    noRoom.end();
    ASSERT_EQ(run.failures.size(), 2u); // of both ranks
    EXPECT_NE(run.failures[0].message().find(checkpoint::nameOfStep(lastStep)), std::string::npos)
        << run.failures[0].message();
    EXPECT_TRUE(run.reporter.ends.empty());
    EXPECT_TRUE(fs::is_empty(folder.path("ckpt")));
  }
}

TEST(Training, stepsEndInTheMiddleOfAnEpoch) {
  ThreadedRun run(toyPlan(1, 1, 10));
  data::Dataset dataset = toyData(run.plan, 53);
  run.train(optionsOf(0, 8), dataset, &dataset);
  EXPECT_EQ(run.reporter.steps.size(), 8u);
  EXPECT_EQ(run.reporter.epochs.size(), 1u);
  EXPECT_EQ(run.reporter.evaluations.size(), 2u);
  EXPECT_EQ(run.reporter.ends[0].steps, 8);
}

TEST(Training, evaluationIsTheMeanOverSamples) {
  std::vector<EvaluationInfo> found;
  for (int64_t evalBatch : {0, 1, 7})
    for (auto [pipe, data] : {std::pair<int64_t, int64_t>(1, 1), {2, 2}}) {
      ThreadedRun run(toyPlan(pipe, data, 10, 2));
      data::Dataset dataset = toyData(run.plan, 30), evaluated = toyData(run.plan, 41, 8);
      TrainingOptions options = optionsOf(1);
      options.evalBatch = evalBatch;
      run.train(options, dataset, &evaluated);
      ASSERT_EQ(run.reporter.evaluations.size(), 1u);
      found.push_back(run.reporter.evaluations[0]);
      EXPECT_EQ(found.back().samples, 41);
      EXPECT_NEAR(found.back().loss, found.front().loss, 1e-5 * found.front().loss);
      EXPECT_NEAR(found.back().accuracy * 41, std::round(found.back().accuracy * 41), 1e-4);
      EXPECT_NEAR(found.back().accuracy, found.front().accuracy, 1e-6);
    }
}

TEST(Training, aJobWithoutABatchIsRefused) {
  plan::Plan plan = toyPlan(1, 1, 10);
  for (plan::Program &program : plan.programs)
    program.batch = 0;
  EXPECT_NE(checkTraining(plan, optionsOf(1), 64).message().find("--batch"), std::string::npos);
  EXPECT_NE(checkEvaluation(plan, 0).message().find("--batch"), std::string::npos);
}

TEST(Training, whatCannotBeContinuedIsRefused) {
  TrainingOptions options = optionsOf(3);
  checkpoint::TrainingState state;
  state.seed = 9, state.numSamples = 53, state.shuffle = "random";
  EXPECT_TRUE(checkResume(state, options, 60)) << "between epochs the data may change";
  state.position = 10;
  EXPECT_TRUE(checkResume(state, options, 53));
  EXPECT_FALSE(checkResume(state, options, 60));
  options.shuffle = {data::Shuffle::Kind::window, 4};
  EXPECT_FALSE(checkResume(state, options, 53));
  options = optionsOf(3);
  for (const char *before : {"whole", "buffer:4"}) {
    state.shuffle = before;
    EXPECT_NE(checkResume(state, options, 53).message().find("version 0.1"), std::string::npos) << before;
  }
  state.shuffle = "random";
  options.seed = 10;
  EXPECT_FALSE(checkResume(state, options, 53));
}

TEST(Training, parametersThatAreNotFiniteAtTheEndAreAFailure) {
  for (auto [pipe, data] : {std::pair(1, 1), {1, 2}}) {
    ThreadedRun run(toyPlan(pipe, data, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    TrainingOptions options = optionsOf(0, 1);
    options.learningRate = 3e38;
    options.shuffle.kind = data::Shuffle::Kind::none;
    run.train(options, dataset);
    ASSERT_EQ(run.failures.size(), size_t(pipe * data));
    EXPECT_NE(run.failures[0].message().find("step 1 made 'w' hold"), std::string::npos) << run.failures[0].message();
    EXPECT_TRUE(run.reporter.ends.empty()) << "it does not say done";
    EXPECT_TRUE(std::isfinite(run.reporter.losses().at(0)));
    ThreadedRun allowed(run.plan);
    options.allowNan = true;
    allowed.train(options, dataset);
    EXPECT_TRUE(allowed.failures.empty());
  }
}

TEST(Training, intervalsAreParsedStrictly) {
  EXPECT_EQ(Interval::parse("--checkpoint-every", "10epochs")->epochs, 10);
  EXPECT_EQ(Interval::parse("--checkpoint-every", "500steps")->steps, 500);
  for (const char *text : {"", "10", "epochs", "0steps", "-1steps", "10 epochs", "10minutes", "1.5epochs"})
    EXPECT_FALSE(Interval::parse("--checkpoint-every", text)) << text;
}
