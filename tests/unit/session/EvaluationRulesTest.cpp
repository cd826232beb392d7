// SPDX-License-Identifier: Apache-2.0
// Proves that evaluations come when they are due, that they end a training and choose the checkpoints that stay as
// plain comparison of their numbers says, alike on every mesh, and that a resumed run goes on as one that was not
// stopped.
#include "runtime/session/DiskNeed.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/session/ThreadedRun.h"

#include <filesystem>

using namespace dg;
using namespace dg::session;
using dg::test::TemporaryFolder;
using dg::test::ThreadedRun;
using dg::test::toyData;
using dg::test::toyPlan;
namespace fs = std::filesystem;

namespace {

/// 53 samples in batches of 10: 6 steps an epoch. Too high a rate, so that the loss goes up and down.
TrainingOptions optionsOf(int64_t epochs, Interval evalEvery) {
  TrainingOptions options;
  options.epochs = epochs;
  options.learningRate = 0.4;
  options.seed = 9;
  options.evalEvery = evalEvery;
  return options;
}

std::vector<int64_t> evaluatedSteps(const ThreadedRun &run) {
  std::vector<int64_t> steps;
  for (const EvaluationInfo &info : run.reporter.evaluations)
    steps.push_back(info.step);
  return steps;
}

} // namespace

TEST(EvaluationRules, evaluationsComeWhenTheyAreDueAndAtTheEnd) {
  auto stepsOf = [](Interval every) {
    ThreadedRun run(toyPlan(1, 1, 10));
    data::Dataset dataset = toyData(run.plan, 53);
    run.train(optionsOf(3, every), dataset, &dataset);
    EXPECT_TRUE(run.failures.empty());
    return evaluatedSteps(run);
  };
  EXPECT_EQ(stepsOf({.epochs = 1}), (std::vector<int64_t>{6, 12, 18}));
  EXPECT_EQ(stepsOf({.epochs = 2}), (std::vector<int64_t>{12, 18}));
  EXPECT_EQ(stepsOf({.steps = 4}), (std::vector<int64_t>{4, 8, 12, 16, 18}));
  EXPECT_EQ(stepsOf({.steps = 6}), (std::vector<int64_t>{6, 12, 18}));
  EXPECT_EQ(stepsOf({.steps = 100}), (std::vector<int64_t>{18}));
}

TEST(EvaluationRules, aStoppedRunGoesOnAsIfItWereNot) {
  ThreadedRun whole(toyPlan(1, 2, 10));
  data::Dataset dataset = toyData(whole.plan, 53);
  TrainingOptions options = optionsOf(3, {.steps = 4});
  options.schedule = *LearningRateSchedule::parse("plateau:factor=0.5,patience=0");
  options.stopWhen = *StopRule::parse("eval.loss:patience=1000");
  whole.train(options, dataset, &dataset);
  // 18 steps, and 6 for each of 5 evaluations, of which one is at the end of an epoch and one at the end of all.
  for (uint64_t stop = 1; stop <= 18 + 5 * 6; ++stop) {
    TemporaryFolder folder;
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
    std::vector<int64_t> steps = evaluatedSteps(first), more = evaluatedSteps(second);
    steps.insert(steps.end(), more.begin(), more.end());
    EXPECT_EQ(steps, evaluatedSteps(whole)) << "stopped before step " << stop;
    EXPECT_EQ(second.reporter.evaluations.back().loss, whole.reporter.evaluations.back().loss);
  }
}

TEST(EvaluationRules, aTrainingEndsWhenItGetsNoBetter) {
  for (auto [pipe, data] : {std::pair<int64_t, int64_t>(1, 1), {1, 2}, {2, 2}}) {
    ThreadedRun run(toyPlan(pipe, data, 10)), all(run.plan);
    data::Dataset dataset = toyData(run.plan, 53);
    TrainingOptions options = optionsOf(40, {.steps = 2});
    all.train(options, dataset, &dataset);
    // The oracle: the first evaluation after which three in a row were not below the lowest before.
    double best = std::numeric_limits<double>::infinity();
    int64_t since = 0, end = 0;
    for (const EvaluationInfo &info : all.reporter.evaluations) {
      since = info.loss < best ? 0 : since + 1;
      best = std::min(best, info.loss);
      end = info.step;
      if (since == 3)
        break;
    }
    ASSERT_LT(end, 240) << "the training is to end before its last step";
    options.stopWhen = *StopRule::parse("eval.loss:patience=3");
    EXPECT_EQ(run.train(options, dataset, &dataset), Outcome::done);
    EXPECT_EQ(run.reporter.ends.at(0).steps, end);
    EXPECT_FALSE(run.reporter.ends[0].stopped);
    EXPECT_NE(run.reporter.ends[0].why.find("eval.loss has not fallen for 3 evaluations"), std::string::npos);
    EXPECT_EQ(run.reporter.evaluations.size(), size_t(end) / 2);
  }
}

TEST(EvaluationRules, theLatestAndTheBestCheckpointStay) {
  ThreadedRun run(toyPlan(1, 2, 10));
  data::Dataset dataset = toyData(run.plan, 53);
  TemporaryFolder folder;
  TrainingOptions options = optionsOf(20, {.epochs = 1});
  options.checkpointDirectory = folder.path("ckpt");
  options.checkpointEvery.epochs = 1;
  options.keep = 2;
  options.keepBest = *WatchedMetric::parse("--keep-best", "eval.loss");
  run.train(options, dataset, &dataset);
  ASSERT_TRUE(run.failures.empty()) << run.failures[0].message();
  const EvaluationInfo *best = &run.reporter.evaluations.front();
  for (const EvaluationInfo &info : run.reporter.evaluations)
    if (info.loss < best->loss)
      best = &info;
  ASSERT_LT(best->step, 114) << "the best is to be an old one";
  EXPECT_EQ(checkpoint::stepsIn(options.checkpointDirectory), (std::vector<int64_t>{best->step, 114, 120}));
  EXPECT_EQ(fs::read_symlink(options.checkpointDirectory + "/best"), checkpoint::nameOfStep(best->step));
  auto opened = checkpoint::Checkpoint::open(options.checkpointDirectory + "/best");
  ASSERT_TRUE(opened) << opened.status().message();
  EXPECT_EQ(opened->state().kept->value, best->loss);
  // It is still known when the training goes on.
  auto latest = checkpoint::Checkpoint::open(options.checkpointDirectory);
  options.epochs = 22;
  ThreadedRun more(run.plan);
  more.train(options, dataset, &dataset, &*latest);
  EXPECT_EQ(checkpoint::stepsIn(options.checkpointDirectory), (std::vector<int64_t>{best->step, 126, 132}));
}

TEST(EvaluationRules, aBestThatIsNotDueIsSavedAtOnce) {
  ThreadedRun run(toyPlan(1, 1, 10));
  data::Dataset dataset = toyData(run.plan, 53);
  TemporaryFolder folder;
  TrainingOptions options = optionsOf(2, {.steps = 1});
  options.learningRate = 0.01; // every evaluation is better
  options.checkpointDirectory = folder.path("ckpt");
  options.keepBest = *WatchedMetric::parse("--keep-best", "eval.loss");
  run.train(options, dataset, &dataset);
  EXPECT_EQ(run.reporter.checkpoints.size(), 12u);
  for (const CheckpointInfo &info : run.reporter.checkpoints)
    EXPECT_TRUE(info.isBest);
}

TEST(EvaluationRules, malformedRulesAreUsageErrors) {
  for (const char *text :
       {"", "loss", "eval.loss", "eval.loss:", "eval.top0:patience=5", "eval.top:patience=5", "eval.f2:patience=5",
        "eval.loss:patience=0", "eval.loss:patience=1.5", "eval.loss:patience=x", "eval.loss:patience=5,",
        "eval.loss:patience=5,patience=6", "eval.loss:patience=5,min_delta=-1", "eval.loss:patience=5,min_delta=nan",
        "eval.loss:min_delta=1"}) {
    auto rule = StopRule::parse(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_EQ(rule.status().kind(), ErrorKind::usage);
    EXPECT_NE(rule.status().message().find("expected"), std::string::npos) << rule.status().message();
  }
  EXPECT_EQ(StopRule::parse("eval.accuracy:patience=5,min_delta=0.01")->least, 0.01);
}

TEST(EvaluationRules, checkpointsThatWillNotFitAreTold) {
  plan::Plan plan = toyPlan(1, 1, 10);
  TrainingOptions options = optionsOf(0, {.epochs = 1});
  options.epochs = 0, options.steps = int64_t(1) << 50;
  EXPECT_EQ(describeDiskNeed(plan, options, 53, 0), "") << "nothing is written";
  TemporaryFolder folder;
  options.checkpointDirectory = folder.path("not/made/yet");
  EXPECT_EQ(describeDiskNeed(plan, options, 53, 0), "") << "one checkpoint, at the end";
  options.checkpointEvery.steps = 1;
  std::string told = describeDiskNeed(plan, options, 53, 0);
  EXPECT_NE(told.find(fmt::format("up to {} checkpoints", (int64_t(1) << 50) + 1)), std::string::npos) << told;
  EXPECT_NE(told.find("--keep"), std::string::npos) << told;
  EXPECT_EQ(describeDiskNeed(plan, options, 53, options.steps - 3), "") << "most of them are done";
  options.keep = 3;
  EXPECT_EQ(describeDiskNeed(plan, options, 53, 0), "");
}
