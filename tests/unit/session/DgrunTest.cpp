// SPDX-License-Identifier: Apache-2.0
// Proves, with real processes over UCX, what dgrun promises its users: losses that do not depend on the ranks, the same
// bits after a stop and a resume, results, traces, and one clear message with the right exit code for every kind of bad
// input.
#include "runtime/data/format/TensorFiles.h"
#include "runtime/package/Package.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/session/CommandRun.h"
#include "tests/unit/session/ToyModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>
#include <sys/mount.h>
#include <unistd.h>

using namespace dg;
using dg::test::CommandResult;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

class Dgrun : public testing::Test {
protected:
  /// Packs the toy model for a mesh and returns the package's path.
  std::string pack(int64_t pipe, int64_t data, uint32_t microbatches = 1, const std::string &object = DG_TOY_OBJECT) {
    std::string plan = plan::toJson(test::toyPlan(pipe, data, 10, microbatches)), kernels = readFile(object);
    std::string path = folder.path("toy-" + std::to_string(pipe) + "-" + std::to_string(data) + ".dgx");
    Status status = package::writePackage(path, {package::PackageEntry::ofText("plan.json", plan),
                                                 package::PackageEntry::ofText("train.native.so", kernels)});
    EXPECT_TRUE(status) << status.message();
    return path;
  }
  CommandResult run(std::vector<std::string> arguments,
                    const std::function<void(pid_t, const std::string &)> &watch = {}) {
    arguments.insert(arguments.begin(), DG_DGRUN);
    return test::runCommand(arguments, watch);
  }
  /// A training on 53 random samples, with --json.
  CommandResult train(const std::string &job, std::vector<std::string> more,
                      const std::function<void(pid_t, const std::string &)> &watch = {}) {
    std::vector<std::string> arguments = {job,      "--json",     "--data",    "x=randn:53x3",
                                          "--data", "y=randn:53", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, watch);
  }
  static std::vector<Json> eventsOf(const CommandResult &result, const std::string &name) {
    std::vector<Json> events;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      Json event = Json::parse(line, nullptr, false);
      EXPECT_TRUE(event.is_object()) << line;
      if (event.is_object() && event["event"] == name)
        events.push_back(event);
    }
    return events;
  }
  static std::vector<float> lossesOf(const CommandResult &result) {
    std::vector<float> losses;
    int64_t first = 0;
    for (const Json &event : eventsOf(result, "step")) {
      int64_t step = event["step"].get<int64_t>();
      first = losses.empty() ? step : first;
      EXPECT_EQ(step, first + int64_t(losses.size()));
      losses.push_back(event["loss"].get<float>());
    }
    return losses;
  }
  static void expectFailure(const CommandResult &result, int code, std::initializer_list<std::string> words) {
    EXPECT_EQ(result.code, code) << result.error;
    EXPECT_TRUE(result.error.starts_with("dgrun: ")) << result.error;
    for (const std::string &word : words)
      EXPECT_NE(result.error.find(word), std::string::npos) << word << " in: " << result.error;
  }
  TemporaryFolder folder;
};

} // namespace

TEST_F(Dgrun, lossesDoNotDependOnTheRanks) {
  CommandResult one = train(pack(1, 1), {"--epochs", "3", "--eval-data", "x=randn:41x3", "--eval-data", "y=randn:41"});
  ASSERT_EQ(one.code, 0) << one.error;
  std::vector<float> expected = lossesOf(one);
  ASSERT_EQ(expected.size(), 18u);
  EXPECT_EQ(eventsOf(one, "epoch").size(), 3u);
  EXPECT_EQ(eventsOf(one, "eval").size(), 3u);
  EXPECT_EQ(eventsOf(one, "start")[0]["ranks"], 1);
  EXPECT_EQ(eventsOf(one, "end")[0]["steps"], 18);
  for (auto [pipe, data, microbatches] : {std::tuple(1, 2, 1u), {2, 1, 2u}, {2, 2, 2u}}) {
    CommandResult many =
        train(pack(pipe, data, microbatches), {"-n", std::to_string(pipe * data), "--epochs", "3", "--eval-data",
                                               "x=randn:41x3", "--eval-data", "y=randn:41"});
    ASSERT_EQ(many.code, 0) << many.error;
    std::vector<float> found = lossesOf(many);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-5 * double(expected[i]));
    EXPECT_NEAR(eventsOf(many, "eval")[2]["loss"].get<double>(), eventsOf(one, "eval")[2]["loss"].get<double>(), 1e-5);
    EXPECT_NEAR(eventsOf(many, "eval")[2]["accuracy"].get<double>(), eventsOf(one, "eval")[2]["accuracy"].get<double>(),
                1e-6);
  }
}

TEST_F(Dgrun, stopAndResumeChangesNoBit) {
  std::string job = pack(1, 2), directory = folder.path("ckpt");
  bool isStopped = false;
  auto stop = [&](pid_t pid, const std::string &out) {
    if (!isStopped && out.find("\"step\":50,") != std::string::npos)
      isStopped = true, kill(pid, SIGTERM);
  };
  CommandResult first = train(job, {"--steps", "10000000", "--checkpoint", directory}, stop);
  ASSERT_EQ(first.code, 75) << first.error;
  std::vector<float> joined = lossesOf(first);
  EXPECT_EQ(eventsOf(first, "end")[0]["resumable"], true);
  std::string steps = std::to_string(joined.size() + 100);
  CommandResult second = train(job, {"--steps", steps, "--checkpoint", directory, "--resume"});
  ASSERT_EQ(second.code, 0) << second.error;
  EXPECT_EQ(eventsOf(second, "start")[0]["step"].get<size_t>(), joined.size());
  std::vector<float> rest = lossesOf(second);
  EXPECT_EQ(rest.size(), 100u);
  joined.insert(joined.end(), rest.begin(), rest.end());
  CommandResult whole = train(job, {"--steps", steps});
  ASSERT_EQ(whole.code, 0) << whole.error;
  EXPECT_EQ(joined, lossesOf(whole));
}

TEST_F(Dgrun, withoutACheckpointSigtermIsNotResumable) {
  CommandResult result = train(pack(1, 2), {"--steps", "10000000"}, [](pid_t pid, const std::string &out) {
    if (out.find("\"step\":50,") != std::string::npos)
      kill(pid, SIGTERM);
  });
  EXPECT_EQ(result.code, 143) << result.error;
}

TEST_F(Dgrun, anEvaluationStopsAndIsRunOnResume) {
  std::string job = pack(1, 2), directory = folder.path("ckpt");
  bool isStopped = false;
  // So many samples, one by one, that nobody would wait for their end.
  CommandResult first = train(job,
                              {"--epochs", "1", "--checkpoint", directory, "--eval-batch", "1", "--eval-data",
                               "x=randn:5000000x3", "--eval-data", "y=randn:5000000"},
                              [&](pid_t pid, const std::string &out) {
                                if (!isStopped && out.find("\"step\":6,") != std::string::npos)
                                  isStopped = true, kill(pid, SIGTERM);
                              });
  ASSERT_EQ(first.code, 75) << first.error;
  EXPECT_EQ(lossesOf(first).size(), 6u);
  EXPECT_TRUE(eventsOf(first, "eval").empty());
  EXPECT_EQ(eventsOf(first, "end")[0]["resumable"], true);
  std::vector<std::string> evaluated = {"--epochs", "1", "--eval-data", "x=randn:41x3", "--eval-data", "y=randn:41"};
  CommandResult whole = train(job, evaluated);
  evaluated.insert(evaluated.end(), {"--checkpoint", directory, "--resume"});
  CommandResult second = train(job, evaluated);
  ASSERT_EQ(second.code, 0) << second.error;
  EXPECT_TRUE(lossesOf(second).empty());
  ASSERT_EQ(eventsOf(second, "eval").size(), 1u);
  for (const char *name : {"epoch", "eval"})
    EXPECT_EQ(eventsOf(second, name)[0]["loss"], eventsOf(whole, name)[0]["loss"]);
}

TEST_F(Dgrun, aReportThatCannotBeWrittenIsAFailure) {
  std::string command =
      fmt::format("exec {} {} --json --data x=randn:53x3 --data y=randn:53 >/dev/full", DG_DGRUN, pack(1, 2));
  CommandResult result = test::runCommand({"/bin/sh", "-c", command});
  EXPECT_EQ(result.code, 74) << result.error;
  // The rank warns at once; dgrun reports the failure at the end.
  EXPECT_TRUE(result.error.starts_with("[0] dgrun: warning: the report on stdout")) << result.error;
  EXPECT_NE(result.error.find("\ndgrun: rank 0 "), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("No space left"), std::string::npos) << result.error;
}

TEST_F(Dgrun, aReaderThatGoesAwayIsNotTheEndOfATraining) {
  std::string directory = folder.path("saved");
  std::string command = fmt::format(
      "{{ sleep 0.2; {} {} --json --data x=randn:53x3 --data y=randn:53 --checkpoint {}; echo code $? >&2; }} | true",
      DG_DGRUN, pack(1, 2), directory);
  CommandResult result = test::runCommand({"/bin/sh", "-c", command});
  EXPECT_NE(result.error.find("Broken pipe; the run goes on"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("code 74"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("signal"), std::string::npos) << result.error;
  EXPECT_FALSE(fs::is_empty(directory));
}

TEST_F(Dgrun, anInterruptLeavesNothingHalfWritten) {
  std::string directory = folder.path("results");
  fs::create_directory(directory);
  CommandResult result =
      run({pack(1, 2), "--json", "--input", "x=randn:3000000x3", "--output", "p=@" + directory + "/p.npy"},
          [](pid_t pid, const std::string &out) {
            if (out.find("\"event\":\"step\"") != std::string::npos)
              kill(pid, SIGINT);
          });
  EXPECT_EQ(result.code, 130) << result.error;
  EXPECT_TRUE(fs::is_empty(directory));
}

/// Sends Ctrl-C once, when step 50 was reported.
static auto interrupter() {
  return [isSent = false](pid_t pid, const std::string &out) mutable {
    if (!isSent && out.find("\"step\":50,") != std::string::npos)
      isSent = true, kill(pid, SIGINT);
  };
}

TEST_F(Dgrun, anInterruptSavesWhereItCan) {
  std::string job = pack(1, 2), directory = folder.path("ckpt");
  CommandResult first = train(job, {"--steps", "10000000", "--checkpoint", directory}, interrupter());
  ASSERT_EQ(first.code, 75) << first.error;
  EXPECT_EQ(first.error, "dgrun: stopping after this step to save; Ctrl-C once more ends it at once\n");
  EXPECT_EQ(eventsOf(first, "end")[0]["stopped"], true);
  EXPECT_EQ(eventsOf(first, "end")[0]["resumable"], true);
  std::vector<float> joined = lossesOf(first);
  std::string steps = std::to_string(joined.size() + 20);
  CommandResult second = train(job, {"--steps", steps, "--checkpoint", directory, "--resume"});
  ASSERT_EQ(second.code, 0) << second.error;
  std::vector<float> rest = lossesOf(second);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, lossesOf(train(job, {"--steps", steps})));
}

TEST_F(Dgrun, whatWasNotSavedIsTold) {
  std::string job = pack(1, 2), directory = folder.path("ckpt");
  CommandResult plain = train(job, {"--steps", "10000000"}, interrupter());
  EXPECT_EQ(plain.code, 130) << plain.error;
  EXPECT_NE(plain.error.find("dgrun: nothing of this training was saved; --checkpoint DIR saves it\n"),
            std::string::npos)
      << plain.error;
  EXPECT_EQ(plain.out.find("done"), std::string::npos);
  CommandResult stopped = run({job, "--data", "x=randn:53x3", "--data", "y=randn:53", "--epochs", "10000000"},
                              [](pid_t pid, const std::string &out) {
                                if (out.find("epoch 3/") != std::string::npos)
                                  kill(pid, SIGTERM);
                              });
  EXPECT_EQ(stopped.code, 143) << stopped.error;
  EXPECT_NE(stopped.out.find("stopped after"), std::string::npos) << stopped.out;
  EXPECT_NE(stopped.out.find("nothing was saved"), std::string::npos) << stopped.out;
  EXPECT_EQ(stopped.out.find("done"), std::string::npos) << stopped.out;
}

TEST_F(Dgrun, aCheckpointIsReplacedOnceItsSuccessorHasGivenAFiniteLoss) {
  for (auto [pipe, data] : {std::pair(1, 1), {2, 2}}) {
    SCOPED_TRACE("pipe=" + std::to_string(pipe) + " data=" + std::to_string(data));
    const std::string job = pack(pipe, data), directory = folder.path("ckpt-" + std::to_string(pipe));
    const std::vector<std::string> saving = {"--checkpoint", directory, "--checkpoint-every", "1steps", "--keep", "1"};
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), saving.begin(), saving.end());
      return more;
    };
    CommandResult good = train(job, with({"--steps", "3"}));
    ASSERT_EQ(good.code, 0) << good.error;
    EXPECT_FALSE(fs::exists(directory + "/step-000002"));
    // Step 4 leaves parameters so large that the loss of step 5 overflows.
    CommandResult bad = train(job, with({"--steps", "9", "--lr", "1e30", "--resume"}));
    expectFailure(bad, 70, {"the loss of step 5 is infinite", "the last good checkpoint is", "step-000003"});
    EXPECT_TRUE(fs::exists(directory + "/step-000003/manifest.json"));
    // That of step 4 was in flight, or had ended.
    EXPECT_FALSE(fs::exists(directory + "/step-000004.partial"));
  }
}

TEST_F(Dgrun, theTableOfParametersFollowsTheStart) {
  std::string plan = plan::toJson(test::toyPlan(1, 1, 10)), kernels = readFile(DG_TOY_OBJECT);
  auto withTable = [&](const std::string &table) {
    std::string path = folder.path("table.dgx");
    EXPECT_TRUE(package::writePackage(path, {package::PackageEntry::ofText("plan.json", plan),
                                             package::PackageEntry::ofText("parameters.json", table),
                                             package::PackageEntry::ofText("train.native.so", kernels)}));
    return path;
  };
  CommandResult result = train(withTable(R"({"parameters":[{"name":"w","role":"trained"}]})"), {"--steps", "1"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(eventsOf(result, "parameters").at(0)["parameters"], Json::parse(R"([{"name":"w","role":"trained"}])"));
  for (const char *table : {"[]", "{\"parameters\":1}", "{"})
    expectFailure(train(withTable(table), {"--steps", "1"}), 65, {"table.dgx:parameters.json"});
}

TEST_F(Dgrun, evaluatesAndNothingElse) {
  std::string directory = folder.path("ckpt");
  std::vector<std::string> data = {"--eval-data", "x=randn:41x3", "--eval-data", "y=randn:41"};
  std::vector<std::string> training = {"--epochs", "2", "--checkpoint", directory};
  training.insert(training.end(), data.begin(), data.end());
  CommandResult trained = train(pack(1, 2), training);
  ASSERT_EQ(trained.code, 0) << trained.error;
  const Json last = eventsOf(trained, "eval").back();
  for (auto [pipe, ranks] : {std::pair<int64_t, int64_t>(1, 2), {1, 1}, {2, 1}}) {
    std::vector<std::string> flags = {pack(pipe, ranks), "--json", "--evaluate", "--resume", directory};
    flags.insert(flags.end(), data.begin(), data.end());
    CommandResult result = run(flags);
    ASSERT_EQ(result.code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    ASSERT_EQ(eventsOf(result, "eval").size(), 1u);
    const Json found = eventsOf(result, "eval")[0];
    EXPECT_NEAR(found["loss"].get<double>(), last["loss"].get<double>(), 1e-6);
    EXPECT_NEAR(found["accuracy"].get<double>(), last["accuracy"].get<double>(), 1e-6);
    EXPECT_EQ(found["samples"], 41);
    EXPECT_TRUE(eventsOf(result, "step").empty());
    EXPECT_EQ(eventsOf(result, "start")[0]["program"], "eval");
  }
  CommandResult random = run({pack(1, 1), "--evaluate", "--eval-data", "x=randn:41x3", "--eval-data", "y=randn:41"});
  EXPECT_EQ(random.code, 0) << random.error;
  EXPECT_NE(random.error.find("note: 1 of 1 parameters ('w') has random values: the job holds no weights for it"),
            std::string::npos)
      << random.error;
}

TEST_F(Dgrun, aPartOfTheDataIsHeldOut) {
  std::vector<std::string> flags = {"--epochs", "3", "--validation", "0.2", "--eval-every", "4steps"};
  CommandResult one = train(pack(1, 1), flags), two = train(pack(1, 2), flags);
  ASSERT_EQ(one.code, 0) << one.error;
  EXPECT_EQ(eventsOf(one, "start")[0]["samples"], 42);
  EXPECT_EQ(eventsOf(one, "epoch")[0]["samples"], 42);
  ASSERT_EQ(eventsOf(one, "eval").size(), 4u); // after steps 4, 8, 12 and the last, 15
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(eventsOf(one, "eval")[i]["samples"], 11);
    EXPECT_NEAR(eventsOf(one, "eval")[i]["loss"].get<double>(), eventsOf(two, "eval")[i]["loss"].get<double>(), 1e-5);
  }
  // A checkpoint knows what was held out: samples of the validation are never trained on later.
  std::string directory = folder.path("ckpt");
  ASSERT_EQ(train(pack(1, 1), {"--epochs", "2", "--validation", "0.2", "--checkpoint", directory}).code, 0);
  CommandResult more = train(pack(1, 1), {"--epochs", "3", "--checkpoint", directory, "--resume"});
  ASSERT_EQ(more.code, 0) << more.error;
  EXPECT_EQ(eventsOf(more, "start")[0]["samples"], 42);
  EXPECT_EQ(eventsOf(more, "eval").back()["samples"], 11);
  expectFailure(train(pack(1, 1), {"--epochs", "4", "--validation", "0.3", "--checkpoint", directory, "--resume"}), 2,
                {"--validation 0.3", "0.2"});
  expectFailure(train(pack(1, 1), {"--validation", "1"}), 2, {"--validation 1", "below 1"});
  expectFailure(train(pack(1, 1), {"--validation", "0.001"}), 2, {"--validation 0.001", "53 samples"});
  expectFailure(train(pack(1, 1), {"--validation", "0.1", "--eval-data", "x=randn:5x3", "--eval-data", "y=randn:5"}), 2,
                {"--eval-data and --validation"});
}

TEST_F(Dgrun, rulesOfEvaluationsNeedSome) {
  std::string job = pack(1, 1), directory = folder.path("ckpt");
  expectFailure(train(job, {"--eval-every", "4steps"}), 2, {"--eval-every", "no evaluations"});
  expectFailure(train(job, {"--stop-when", "eval.loss:patience=5"}), 2, {"--stop-when", "no evaluations"});
  expectFailure(train(job, {"--keep-best", "eval.loss", "--checkpoint", directory}), 2, {"no evaluations"});
  expectFailure(train(job, {"--lr-schedule", "plateau"}), 2, {"plateau", "no evaluations"});
  expectFailure(train(job, {"--keep", "3"}), 2, {"--keep", "--checkpoint DIR"});
  expectFailure(train(job, {"--validation", "0.1", "--eval-every", "4"}), 2, {"--eval-every '4'", "500steps"});
  expectFailure(train(job, {"--validation", "0.1", "--stop-when", "eval.f2:patience=5"}), 2, {"eval.f2", "eval.loss"});
  expectFailure(train(job, {"--validation", "0.1", "--stop-when", "eval.f1:patience=5"}), 2, {"eval.f1", "--metrics"});
  expectFailure(train(job, {"--evaluate"}), 2, {"--evaluate takes"});
  expectFailure(run({job, "--evaluate"}), 2, {"'x'", "--eval-data"});
}

TEST_F(Dgrun, anotherPlanContinues) {
  std::string directory = folder.path("ckpt");
  CommandResult whole = train(pack(1, 1), {"--epochs", "4"});
  CommandResult first = train(pack(1, 2), {"--epochs", "2", "--checkpoint", directory});
  ASSERT_EQ(first.code, 0) << first.error;
  ASSERT_EQ(eventsOf(first, "checkpoint").size(), 1u);
  CommandResult second = train(pack(2, 1, 2), {"--epochs", "4", "--resume", directory});
  ASSERT_EQ(second.code, 0) << second.error;
  std::vector<float> found = lossesOf(first), rest = lossesOf(second), expected = lossesOf(whole);
  found.insert(found.end(), rest.begin(), rest.end());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5 * double(expected[i]));
  // A second training in the same folder would mix with the first.
  expectFailure(train(pack(1, 2), {"--epochs", "2", "--checkpoint", directory}), 2, {"--resume", "step 12"});
  expectFailure(train(pack(1, 2), {"--epochs", "9", "--seed", "5", "--resume", directory}), 2, {"seed 0"});
}

TEST_F(Dgrun, plansOfSmallerBatchesTakeAndGiveTheSame) {
  auto packed = [&](const plan::Plan &smaller) {
    std::string path = folder.path("sizes.dgx"), kernels = readFile(DG_TOY_OBJECT);
    Status status = package::writePackage(
        path, {package::PackageEntry::ofText("plan.json", plan::toJson(test::toyPlan(1, 1, 10, 1))),
               package::PackageEntry::ofText("plan-4.json", plan::toJson(smaller)),
               package::PackageEntry::ofText("train.native.so", kernels)});
    EXPECT_TRUE(status) << status.message();
    return path;
  };
  auto infer = [&](const plan::Plan &smaller, int samples) {
    return run({packed(smaller), "--json", "--input", "x=randn:" + std::to_string(samples) + "x3"});
  };
  const plan::Plan good = test::toyPlan(1, 1, 4, 1);
  for (auto [samples, batch] : {std::pair(3, 4), {4, 4}, {5, 10}, {10, 10}}) {
    CommandResult result = infer(good, samples);
    ASSERT_EQ(result.code, 0) << result.error;
    EXPECT_EQ(eventsOf(result, "start")[0]["batch"], batch);
  }
  plan::Plan renamed = good;
  for (plan::Program &program : renamed.programs)
    for (plan::Port &port : program.outputs)
      port.name += "2";
  expectFailure(infer(renamed, 3), 65, {"plan-4.json", "output", "differs from plan.json"});
  expectFailure(infer(test::toyPlan(1, 1, 10, 1), 3), 65, {"plan-4.json", "expected fewer samples than 10"});
  expectFailure(infer(test::toyPlan(1, 2, 4, 1), 3), 65, {"plan-4.json", "on 2 ranks", "on one rank"});
}

TEST_F(Dgrun, infersWithTrainedWeights) {
  std::string directory = folder.path("ckpt"), results = folder.path("p.npy"), untrained = folder.path("q.npy");
  ASSERT_EQ(train(pack(1, 2), {"--epochs", "2", "--checkpoint", directory}).code, 0);
  CommandResult result =
      run({pack(1, 2), "--input", "x=randn:47x3", "--output", "p=@" + results, "--resume", directory});
  ASSERT_EQ(result.code, 0) << result.error;
  ASSERT_EQ(run({pack(1, 1), "--input", "x=randn:47x3", "--output", "p=@" + untrained}).code, 0);
  auto trained = data::openNpy(results), raw = data::openNpy(untrained);
  ASSERT_TRUE(trained && raw);
  EXPECT_EQ(trained->shape, (std::vector<int64_t>{47}));
  EXPECT_NE(readFile(results), readFile(untrained));
}

TEST_F(Dgrun, aFlagThatARunCannotMeanIsRefusedOrNoted) {
  const std::string job = pack(1, 1), out = folder.path("p.npy");
  const std::vector<std::string> infer = {job, "--input", "x=randn:10x3"};
  auto with = [](std::vector<std::string> some, std::initializer_list<std::string> more) {
    some.insert(some.end(), more);
    return some;
  };
  expectFailure(run(with(infer, {"--lr", "1"})), 2, {"--lr", "infers"});
  expectFailure(run(with(infer, {"--eval-batch", "1"})), 2, {"--eval-batch", "infers"});
  expectFailure(run(with(infer, {"--checkpoint", folder.path("none")})), 2, {"--checkpoint", "--resume"});
  expectFailure(run(with(infer, {"--output", "p=@" + out, "--output", "p=@" + out + "2"})), 2, {"given before"});
  CommandResult kept = run(infer);
  EXPECT_EQ(kept.code, 0) << kept.error;
  EXPECT_NE(kept.error.find("no result is kept"), std::string::npos) << kept.error;
  const std::string directory = folder.path("ckpt");
  ASSERT_EQ(train(job, {"--steps", "3", "--checkpoint", directory}).code, 0);
  CommandResult again = train(job, {"--steps", "2", "--checkpoint", directory, "--resume"});
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_NE(again.error.find("nothing is left to train: the checkpoint is at step 3"), std::string::npos);
}

TEST_F(Dgrun, tracesEveryRank) {
  std::string path = folder.path("trace.json");
  std::string job = pack(2, 1, 2);
  CommandResult result = train(job, {"--steps", "3", "--trace", path});
  ASSERT_EQ(result.code, 0) << result.error;
  Result<package::Package> package = package::Package::open(job);
  ASSERT_TRUE(package);
  Json ops = Json::parse(*package->text("plan.json"))["ops"];
  Json trace = Json::parse(readFile(path), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<int64_t, int> tasks;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      ++tasks[event["pid"].get<int64_t>()];
      EXPECT_EQ(event["name"], ops.at(event["args"]["op"].get<size_t>())["name"]);
    }
  EXPECT_EQ(tasks.size(), 2u);
  EXPECT_GE(tasks[0], 3 * 4);
  for (const auto &entry : fs::directory_iterator(fs::path(path).parent_path()))
    EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
}

/// The ops of each stage, with shares that add up, and nothing on stdout.
TEST_F(Dgrun, profilesEachStage) {
  CommandResult result = train(pack(2, 2), {"--steps", "4", "--profile"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.out.find("profile"), std::string::npos) << result.out;
  std::map<std::string, double> shares; // by who prints
  std::istringstream lines(result.error);
  for (std::string line; std::getline(lines, line);)
    if (size_t percent = line.find('%'); percent != std::string::npos) {
      size_t number = line.find_last_of(' ', percent);
      shares[line.substr(0, line.find(']') + 1)] += std::stod(line.substr(number, percent - number));
    }
  ASSERT_EQ(shares.size(), 2u) << result.error;
  for (const auto &[who, share] : shares)
    EXPECT_NEAR(share, 100, 2) << who << result.error;
  EXPECT_NE(train(pack(1, 1), {"--steps", "1", "--profile"}).error.find("one step is not enough"), std::string::npos);
}

TEST_F(Dgrun, textForPeople) {
  CommandResult result = run({pack(1, 2), "--data", "x=randn:53x3", "--data", "y=randn:53", "--epochs", "2"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_NE(result.out.find("toy: 3 parameters, 2 ranks"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("epoch 2/2  loss"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\r'), std::string::npos);
  EXPECT_EQ(result.error, "");
}

TEST_F(Dgrun, progressIsForTerminals) {
  // script(1) gives the command a terminal; what is printed for keeping goes to a file all the same.
  std::string lines = folder.path("lines");
  std::string command =
      fmt::format("{} {} --data x=randn:500000x3 --data y=randn:500000 > {}", DG_DGRUN, pack(1, 2), lines);
  CommandResult shown = test::runCommand({"/usr/bin/script", "-qec", command, "/dev/null"});
  ASSERT_EQ(shown.code, 0) << shown.out;
  // How often it is drawn depends on the machine; what is drawn does not.
  const std::regex bar("epoch 1/1 \\[(=*)( *)\\] ([0-9]+)/50000  loss ");
  std::sregex_iterator drawn(shown.out.begin(), shown.out.end(), bar), end;
  EXPECT_NE(drawn, end) << shown.out;
  for (; drawn != end; ++drawn) {
    const auto width = drawn->length(1) + drawn->length(2);
    EXPECT_TRUE(width == 30 || width == 20 || width == 10) << drawn->str();
    EXPECT_EQ(drawn->length(1), width * std::stoi((*drawn)[3]) / 50000) << drawn->str();
  }
  std::string kept = readFile(lines);
  EXPECT_NE(kept.find("epoch 1/1  loss"), std::string::npos) << kept;
  EXPECT_EQ(kept.find('\r'), std::string::npos) << kept;
  EXPECT_EQ(kept.find('\x1b'), std::string::npos) << kept;
}

TEST_F(Dgrun, anEpochThatWouldLearnNothingIsTold) {
  std::string job = pack(1, 1), checkpoint = folder.path("cosine");
  CommandResult first = train(job, {"--epochs", "2", "--lr-schedule", "cosine:epochs=2", "--checkpoint", checkpoint});
  EXPECT_EQ(first.error, "");
  // The checkpoint's schedule has ended.
  CommandResult second = train(job, {"--epochs", "3", "--checkpoint", checkpoint, "--resume"});
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.error, "dgrun: note: epoch 3 learns nothing: cosine:epochs=2 gives it the rate 0; --lr-schedule and "
                          "--lr give it another\n");
  CommandResult third =
      train(job, {"--epochs", "4", "--lr-schedule", "constant", "--checkpoint", checkpoint, "--resume"});
  EXPECT_EQ(third.error, "");
}

TEST_F(Dgrun, badInputIsNamedBeforeAnythingRuns) {
  std::string job = pack(1, 2);
  expectFailure(train(job, {"-n", "3"}), 2, {"-n 3", "2 ranks"});
  expectFailure(train(folder.path("missing.dgx"), {}), 65, {"missing.dgx"});
  expectFailure(train(folder.write("foreign.dgx", "not a package"), {}), 65, {"foreign.dgx"});
  std::string bytes = readFile(job);
  expectFailure(train(folder.write("cut.dgx", bytes.substr(0, bytes.size() / 2)), {}), 65, {"cut.dgx"});
  bytes[bytes.find("toy_predict")] ^= 1;
  expectFailure(train(folder.write("flipped.dgx", bytes), {}), 65, {"flipped.dgx"});
  expectFailure(run({job}), 2, {"'x'", "--data"});
  expectFailure(run({job, "--data", "x=randn:5x3", "--data", "y=randn:6"}), 65, {"5", "6"});
  expectFailure(run({job, "--data", "x=randn:5x4", "--data", "y=randn:5"}), 65, {"5x4", "3"});
  expectFailure(run({job, "--data", "x=/nonexistent", "--data", "y=randn:5"}), 65, {"/nonexistent"});
  expectFailure(run({job, "--data", "x"}), 2, {"--data 'x'"});
  expectFailure(train(job, {"--lr-schedule", "linear"}), 2, {"linear"});
  expectFailure(train(job, {"--checkpoint-every", "5steps"}), 2, {"--checkpoint DIR"});
  expectFailure(train(job, {"--json-every", "5"}), 2, {"--json-every '5'", "100steps"});
  expectFailure(train(job, {"--log-dir", "/proc/nothing/here"}), 2, {"--log-dir /proc/nothing/here"});
  expectFailure(train(job, {"--resume", folder.path("nowhere")}), 65, {"nowhere"});
  expectFailure(train(job, {"--drop-last", "--eval-data", "x=randn:5x3"}), 2, {"'y'", "--eval-data"});
  expectFailure(train(job, {"--eval-batch", "11", "--eval-data", "x=randn:5x3", "--eval-data", "y=randn:5"}), 2,
                {"11", "10"});
  expectFailure(run({job, "--input", "x=randn:5x3", "--output", "z=@z.npy"}), 2, {"'z'"});
  CommandResult failed = train(job, {"-n", "3"});
  ASSERT_EQ(eventsOf(failed, "failure").size(), 1u);
  EXPECT_EQ(run({job, "--bogus"}).code, 2);
  EXPECT_EQ(run({job, "--epochs", "1", "--steps", "1"}).code, 2);
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"--version"}).code, 0);
  EXPECT_EQ(run({"--help"}).code, 0);
}

TEST_F(Dgrun, objectsOfAnotherVersionAreRefused) {
  expectFailure(train(pack(1, 1, 1, DG_OLD_OBJECT), {}), 65, {"train.native.so", "version"});
}

/// The processes that loaded an object from memory, by the loader's own account (LD_DEBUG): a line begins with who
/// asked. `launcher` gets the process that the file is named after, which ranks are forks of.
static std::set<std::string> whoLoaded(const fs::path &directory, std::string &launcher) {
  std::set<std::string> who;
  for (const auto &entry : fs::directory_iterator(directory)) {
    launcher = entry.path().extension().string().substr(1);
    std::ifstream log(entry.path());
    for (std::string line; std::getline(log, line);)
      if (line.find("/proc/self/fd/") != std::string::npos)
        who.insert(line.substr(line.find_first_not_of(' '), line.find(':') - line.find_first_not_of(' ')));
  }
  return who;
}

TEST_F(Dgrun, codeIsLoadedInRanksOnly) {
  const std::string job = pack(1, 2);
  for (bool isDry : {true, false}) {
    const std::string logs = folder.path(isDry ? "dry" : "wet");
    fs::create_directory(logs);
    setenv("LD_DEBUG", "files", 1);
    setenv("LD_DEBUG_OUTPUT", (logs + "/log").c_str(), 1);
    CommandResult result = isDry ? run({job, "--dry-run"}) : train(job, {"--steps", "1"});
    unsetenv("LD_DEBUG");
    unsetenv("LD_DEBUG_OUTPUT");
    EXPECT_EQ(result.code, 0) << result.error;
    std::string launcher;
    std::set<std::string> who = whoLoaded(logs, launcher);
    EXPECT_EQ(who.size(), isDry ? 0u : 2u);
    EXPECT_FALSE(launcher.empty());
    EXPECT_FALSE(who.contains(launcher));
  }
}

TEST_F(Dgrun, aSignatureIsAskedFor) {
  const std::string job = pack(1, 1);
  expectFailure(train(job, {"--require-signature", folder.path("missing.pem")}), 65, {"missing.pem"});
  expectFailure(train(job, {"--require-signature", folder.write("text.pem", "no key")}), 65,
                {"text.pem", "expected Ed25519 public keys"});
  const std::string key = folder.write("pub.pem", "-----BEGIN PUBLIC KEY-----\n"
                                                  "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
                                                  "-----END PUBLIC KEY-----\n");
  expectFailure(train(job, {"--require-signature", key}), 65, {"is not signed", "--sign"});
  expectFailure(run({job, "--dry-run", "--require-signature", key}), 65, {"is not signed"});
}

TEST_F(Dgrun, aFullDiskLeavesThePreviousCheckpointGood) {
  std::string disk = folder.path("disk"), job = pack(1, 2);
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=20k") != 0)
    GTEST_SKIP() << "mounting a file system is not allowed here";
  std::string directory = disk + "/ckpt";
  CommandResult first = train(job, {"--steps", "5", "--checkpoint", directory});
  EXPECT_EQ(first.code, 0) << first.error;
  std::ofstream(disk + "/filler") << std::string(20480, 'x');
  const auto page = uintmax_t(sysconf(_SC_PAGESIZE)); // the run's lock has one
  fs::resize_file(disk + "/filler", fs::file_size(disk + "/filler") - page);
  CommandResult second = train(job, {"--steps", "9", "--checkpoint", directory, "--resume"});
  expectFailure(second, 74, {"step-000009", "bytes are needed", "earlier checkpoints"});
  EXPECT_EQ(eventsOf(second, "failure").size(), 1u);
  fs::remove(disk + "/filler");
  CommandResult third = train(job, {"--steps", "9", "--checkpoint", directory, "--resume"});
  EXPECT_EQ(third.code, 0) << third.error;
  EXPECT_EQ(umount(disk.c_str()), 0);
}
