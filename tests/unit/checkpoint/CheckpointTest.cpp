// SPDX-License-Identifier: Apache-2.0
// Proves that what one plan writes any other plan reads, bit for bit, and that a checkpoint that is damaged, incomplete
// or of another model is refused by name.
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/ShardRuns.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <sys/stat.h>
#include <thread>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::keptValue;
using dg::test::SimulatedRanks;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const TrainingState state = {"toy", 123, 2, 40, 7, 1000, "whole", 1.5, 0.01, "constant"};

/// The same model (a 7x6 weight, a bias, their momenta, a scalar) under any mesh.
plan::Plan makePlan(int64_t pipe, int64_t data, int64_t tensor) {
  plan::Plan plan;
  plan.model.name = "toy";
  plan.model.optimizer = "sgd:lr=0.01,momentum=0.5";
  plan.mesh.sizes = {pipe, data, tensor};
  uint32_t last = uint32_t(pipe - 1);
  std::string axis = tensor > 1 ? "tensor" : "", zero = data > 1 ? "data" : "";
  plan.values = {keptValue(plan.mesh, "fc1.weight", 0, {7, 6}, {"", axis}),
                 keptValue(plan.mesh, "fc1.weight.momentum", 0, {7, 6}, {zero, axis}, plan::ValueKind::state),
                 keptValue(plan.mesh, "fc2.bias", last, {5}, {axis}),
                 keptValue(plan.mesh, "fc2.bias.momentum", last, {5}, {axis}, plan::ValueKind::state),
                 keptValue(plan.mesh, "scale", last, {}, {})};
  plan.values.push_back(keptValue(plan.mesh, "hidden", 0, {3}, {""}, plan::ValueKind::activation));
  return plan;
}

/// Element i of tensor t is 1000 t + i, wherever it lies.
float expected(plan::ValueId id, int64_t global) { return float(1000 * id + global); }

void fill(const plan::Plan &plan, SimulatedRanks &ranks) {
  for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
    for (plan::ValueId id = 0; id < 5; ++id)
      for (const ShardRun &run : shardRunsOf(plan.values[id], plan.mesh, plan.mesh.coordinatesOf(rank)))
        for (int64_t i = 0; i < run.elements; ++i)
          ranks.valueOf(rank, id)[size_t(run.local + i)] = expected(id, run.global + i);
}

void expectRestored(const plan::Plan &plan, const Checkpoint &checkpoint) {
  SimulatedRanks ranks(plan);
  for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank) {
    plan::Coordinates at = plan.mesh.coordinatesOf(rank);
    SimulatedRanks::Values values(ranks, rank);
    ASSERT_TRUE(checkpoint.restore(plan, at, values));
    for (plan::ValueId id = 0; id < 5; ++id) {
      std::vector<float> wanted(plan.values[id].bytes / sizeof(float), 0.0f);
      for (const ShardRun &run : shardRunsOf(plan.values[id], plan.mesh, at))
        for (int64_t i = 0; i < run.elements; ++i)
          wanted[size_t(run.local + i)] = expected(id, run.global + i);
      if (int64_t(plan.values[id].stage) == at.pipe)
        ASSERT_EQ(ranks.valueOf(rank, id), wanted) << "rank " << rank << ", " << plan.values[id].name;
    }
  }
}

void writeExample(const plan::Plan &plan, const std::string &directory, const TrainingState &at = state) {
  SimulatedRanks ranks(plan);
  fill(plan, ranks);
  for (const auto &result : ranks.write(directory, at)) {
    ASSERT_TRUE(result) << result.status().message();
    EXPECT_EQ(*result, directory + "/" + nameOfStep(at.step));
  }
}

ino_t fileNumberOf(const std::string &path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_ino;
}

void expectRefused(const Status &status, std::initializer_list<std::string> words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), ErrorKind::badInput);
  for (const std::string &word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

} // namespace

TEST(Checkpoint, anyPlanReadsWhatAnyPlanWrote) {
  const int64_t meshes[][3] = {{1, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 1, 1}, {2, 2, 2}, {1, 3, 4}};
  for (const auto &from : meshes) {
    TemporaryFolder folder;
    plan::Plan writing = makePlan(from[0], from[1], from[2]);
    writeExample(writing, folder.path("ckpt"));
    auto checkpoint = Checkpoint::open(folder.path("ckpt"));
    ASSERT_TRUE(checkpoint) << checkpoint.status().message();
    EXPECT_EQ(checkpoint->state(), state);
    for (const auto &to : meshes) {
      plan::Plan reading = makePlan(to[0], to[1], to[2]);
      Status status = checkpoint->check(reading, Purpose::training);
      ASSERT_TRUE(status) << status.message();
      expectRestored(reading, *checkpoint);
    }
  }
}

TEST(Checkpoint, theBytesDoNotDependOnThePlan) {
  TemporaryFolder folder;
  writeExample(makePlan(1, 1, 1), folder.path("a"));
  writeExample(makePlan(2, 2, 2), folder.path("b"));
  auto read = [&](const std::string &directory) {
    std::ifstream in(folder.path(directory) + "/" + nameOfStep(123) + "/" + tensorFileName, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  EXPECT_EQ(read("a"), read("b"));
}

TEST(Checkpoint, tiedParametersAreWrittenOnceAndReadEverywhere) {
  TemporaryFolder folder;
  plan::Plan plan = makePlan(2, 1, 1);
  plan::Value tied = plan.values[0];
  tied.stage = 1;
  plan.values.push_back(tied);
  SimulatedRanks ranks(plan);
  fill(plan, ranks);
  for (const auto &result : ranks.write(folder.path("ckpt"), state))
    ASSERT_TRUE(result) << result.status().message();
  auto checkpoint = Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(checkpoint) << checkpoint.status().message();
  SimulatedRanks::Values values(ranks, 1);
  ASSERT_TRUE(checkpoint->restore(plan, {1, 0, 0}, values));
  EXPECT_EQ(ranks.valueOf(1, plan::ValueId(plan.values.size() - 1)), ranks.valueOf(0, 0));
}

TEST(Checkpoint, latestIsTheHighestWholeOne) {
  TemporaryFolder folder;
  plan::Plan plan = makePlan(1, 1, 1);
  for (int64_t step : {5, 1000000, 70}) {
    TrainingState at = state;
    at.step = step;
    writeExample(plan, folder.path("ckpt"), at);
  }
  EXPECT_EQ(stepsIn(folder.path("ckpt")), (std::vector<int64_t>{5, 70, 1000000}));
  fs::create_directory(folder.path("ckpt/step-3000000.partial"));
  EXPECT_EQ(Checkpoint::open(folder.path("ckpt"))->state().step, 1000000);
  EXPECT_EQ(Checkpoint::open(folder.path("ckpt/step-000005"))->state().step, 5);
}

// A step back in silence loses work: each way in which the latest can be damaged is an error that names it, and
// --resume-older says what it passes over.
TEST(Checkpoint, anUnreadableLatestIsNeverPassedOverInSilence) {
  plan::Plan plan = makePlan(1, 1, 1);
  const std::pair<const char *, std::function<void(const std::string &)>> damages[] = {
      {"manifest.json", [](const std::string &at) { fs::resize_file(at + "/manifest.json", 50); }},
      {"manifest.json", [](const std::string &at) { fs::remove(at + "/manifest.json"); }},
      {"step-000200", [](const std::string &at) { fs::remove_all(at), fs::create_directory(at); }},
      {"step 100",
       [](const std::string &at) { fs::remove_all(at), fs::copy(fs::path(at).parent_path() / "step-000100", at); }},
      {"hash", [](const std::string &at) {
         std::fstream file(at + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
         file.seekp(-3, std::ios::end).put('\x55');
       }}};
  for (const auto &[word, damage] : damages) {
    TemporaryFolder folder;
    for (int64_t step : {100, 200}) {
      TrainingState at = state;
      at.step = step;
      writeExample(plan, folder.path("ckpt"), at);
    }
    damage(folder.path("ckpt/step-000200"));
    expectRefused(Checkpoint::open(folder.path("ckpt")).status(),
                  {word, "step-000200", "--resume-older", "the next is step-000100"});
    auto older = Checkpoint::open(folder.path("ckpt"), Unreadable::passOver);
    ASSERT_TRUE(older) << older.status().message();
    EXPECT_EQ(older->state().step, 100);
    ASSERT_EQ(older->passedOver().size(), 1u);
    EXPECT_EQ(older->passedOver()[0].step, 200);
    EXPECT_NE(older->passedOver()[0].reason.find(word), std::string::npos) << older->passedOver()[0].reason;
    auto continued = continueIn(folder.path("ckpt"), std::move(*older), Unreadable::passOver);
    ASSERT_TRUE(continued) << continued.status().message();
    EXPECT_EQ(continued->state().step, 100);
  }
}

TEST(Checkpoint, missingFoldersAreNamed) {
  TemporaryFolder folder;
  expectRefused(Checkpoint::open(folder.path("none")).status(), {folder.path("none")});
}

TEST(Checkpoint, damagedTensorsAreFound) {
  TemporaryFolder folder;
  writeExample(makePlan(1, 1, 1), folder.path("ckpt"));
  std::string path = folder.path("ckpt/step-000123/model.safetensors");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x55');
  }
  expectRefused(Checkpoint::open(folder.path("ckpt")).status(), {path, "hash", "none before it"});
  fs::resize_file(path, fs::file_size(path) - 1);
  expectRefused(Checkpoint::open(folder.path("ckpt")).status(), {path, "bytes"});
  fs::remove(path);
  expectRefused(Checkpoint::open(folder.path("ckpt")).status(), {path});
}

TEST(Checkpoint, optimizerStateIsNeverLostSilently) {
  TemporaryFolder folder;
  plan::Plan whole = makePlan(1, 1, 1), plain = whole;
  std::erase_if(plain.values, [](const plan::Value &value) { return value.kind == plan::ValueKind::state; });
  {
    SimulatedRanks ranks(plain);
    for (const auto &result : ranks.write(folder.path("plain"), state))
      ASSERT_TRUE(result) << result.status().message();
  }
  writeExample(whole, folder.path("whole"));
  auto withoutState = Checkpoint::open(folder.path("plain")), withState = Checkpoint::open(folder.path("whole"));
  ASSERT_TRUE(withoutState && withState);
  expectRefused(withoutState->check(whole, Purpose::training), {"'fc1.weight.momentum'", "state of the optimizer"});
  expectRefused(withState->check(plain, Purpose::training), {"'fc1.weight.momentum'", "lose"});
  EXPECT_TRUE(withState->check(plain, Purpose::inference));
}

TEST(Checkpoint, otherShapesAndTypesAreNamed) {
  TemporaryFolder folder;
  plan::Plan plan = makePlan(1, 1, 1);
  writeExample(plan, folder.path("ckpt"));
  auto checkpoint = Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(checkpoint);
  plan::Plan other = plan;
  other.values[0].globalShape = {6, 7};
  expectRefused(checkpoint->check(other, Purpose::training), {"'fc1.weight'", "[7, 6]", "[6, 7]"});
  other = plan;
  other.values[2].dtype = plan::DType::bf16;
  expectRefused(checkpoint->check(other, Purpose::training), {"'fc2.bias'", "F32", "BF16"});
  other = plan;
  other.values[0].name = "fc9.weight";
  expectRefused(checkpoint->check(other, Purpose::inference), {"'fc9.weight'", "parameter"});
}

TEST(Checkpoint, whatADeadRunLeftIsReplaced) {
  TemporaryFolder folder;
  fs::create_directories(folder.path("ckpt/step-000123.partial"));
  fs::create_directories(folder.path("ckpt/step-000123"));
  folder.write("ckpt/step-000123.partial/model.safetensors", "half");
  folder.write("ckpt/step-000123/manifest.json", "half");
  writeExample(makePlan(1, 1, 1), folder.path("ckpt"));
  EXPECT_TRUE(Checkpoint::open(folder.path("ckpt")));
  EXPECT_FALSE(fs::exists(folder.path("ckpt/step-000123.partial")));
}

TEST(Checkpoint, aDivergedTrainingIsStillTheLatest) {
  TemporaryFolder folder;
  TrainingState diverged = state;
  diverged.step = 124;
  diverged.lossSum = std::numeric_limits<double>::quiet_NaN();
  writeExample(makePlan(1, 1, 1), folder.path("ckpt"));
  writeExample(makePlan(1, 1, 1), folder.path("ckpt"), diverged);
  EXPECT_EQ(stepsIn(folder.path("ckpt")), (std::vector<int64_t>{123, 124}));
}

// A kill at any moment, before and after each agreement of the ranks too, leaves a whole checkpoint under the name.
TEST(Checkpoint, aWholeOneIsReplacedAtOnce) {
  TemporaryFolder folder;
  plan::Plan plan = makePlan(1, 2, 1);
  writeExample(plan, folder.path("ckpt"));
  ino_t before = fileNumberOf(folder.path("ckpt/step-000123"));
  std::atomic<bool> isDone = false;
  int64_t numLooks = 0, numMissing = 0;
  std::thread watcher([&] {
    for (; !isDone; ++numLooks)
      numMissing += !fs::exists(folder.path("ckpt/step-000123/manifest.json"));
  });
  writeExample(plan, folder.path("ckpt"));
  isDone = true;
  watcher.join();
  EXPECT_NE(fileNumberOf(folder.path("ckpt/step-000123")), before);
  EXPECT_EQ(numMissing, 0) << "of " << numLooks;
  EXPECT_TRUE(Checkpoint::open(folder.path("ckpt")));
  EXPECT_FALSE(fs::exists(folder.path("ckpt/step-000123.partial")));
}

TEST(Checkpoint, aFolderThatCannotBeWrittenIsFoundAtOnce) {
  plan::Plan plan = makePlan(1, 2, 1);
  SimulatedRanks ranks(plan);
  for (const auto &result : ranks.write("/proc", state)) { // nobody, not even root, makes a file there
    ASSERT_FALSE(result);
    EXPECT_EQ(result.status().kind(), ErrorKind::usage);
    EXPECT_NE(result.status().message().find("--checkpoint /proc: host "), std::string::npos)
        << result.status().message();
  }
}

TEST(Checkpoint, aFolderThatIsNotSharedIsFoundAtOnce) {
  TemporaryFolder folder;
  plan::Plan plan = makePlan(1, 2, 1);
  SimulatedRanks ranks(plan);
  // Rank 1 is on a host where the folder is another one.
  ranks.afterAgreement = [&] { fs::remove(folder.path("ckpt/probe.partial")); };
  for (const auto &result : ranks.write(folder.path("ckpt"), state)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.status().kind(), ErrorKind::usage);
    for (const std::string &word : {folder.path("ckpt") + ": host ", std::string("all hosts share")})
      EXPECT_NE(result.status().message().find(word), std::string::npos) << result.status().message();
  }
  EXPECT_TRUE(fs::is_empty(folder.path("ckpt")));
}

namespace {

/// A folder with checkpoints of these steps, of a training that continues `origin`.
void writeSteps(const std::string &directory, std::initializer_list<int64_t> steps, const std::string &origin = "") {
  for (int64_t step : steps) {
    TrainingState at = state;
    at.step = step;
    at.origin = origin;
    writeExample(makePlan(1, 1, 1), directory, at);
  }
}

Result<Checkpoint> continueFrom(const std::string &from, const std::string &directory) {
  auto opened = Checkpoint::open(from);
  return opened ? continueIn(directory, std::move(*opened), Unreadable::refuse) : Result<Checkpoint>(opened.status());
}

void expectUsageError(const Status &status, std::initializer_list<std::string> words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), ErrorKind::usage);
  for (const std::string &word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

} // namespace

TEST(ContinueIn, itsOwnFolderGoesOnFromTheLatestOnly) {
  TemporaryFolder folder;
  writeSteps(folder.path("ckpt"), {100, 200, 300});
  auto latest = continueFrom(folder.path("ckpt"), folder.path("ckpt/../ckpt/"));
  ASSERT_TRUE(latest) << latest.status().message();
  EXPECT_EQ(latest->state().step, 300);
  EXPECT_EQ(latest->state().origin, "");
  for (const char *name : {"ckpt/step-000100", "ckpt/step-000100/"})
    expectUsageError(continueFrom(folder.path(name), folder.path("ckpt")).status(),
                     {"step-000100", "up to step 300", "remove those after step 100"});
  fs::remove_all(folder.path("ckpt/step-000200"));
  fs::remove_all(folder.path("ckpt/step-000300"));
  EXPECT_TRUE(continueFrom(folder.path("ckpt/step-000100"), folder.path("ckpt")));
}

TEST(ContinueIn, aCommandThatIsStartedAgainGoesOnWhereItWas) {
  TemporaryFolder folder;
  writeSteps(folder.path("a"), {100});
  auto first = continueFrom(folder.path("a"), folder.path("b"));
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ(first->state().step, 100);
  EXPECT_EQ(first->state().origin.size(), 32u);
  writeSteps(folder.path("b"), {150, 200}, first->state().origin);
  auto again = continueFrom(folder.path("a"), folder.path("b"));
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(again->state().step, 200);
  EXPECT_EQ(again->state().origin, first->state().origin);
}

TEST(ContinueIn, anotherTrainingsLaterCheckpointsAreRefused) {
  TemporaryFolder folder;
  writeSteps(folder.path("a"), {100});
  writeSteps(folder.path("b"), {50, 200});
  expectUsageError(continueFrom(folder.path("a"), folder.path("b")).status(),
                   {folder.path("b"), "step-000200", "beyond step 100", folder.path("a")});
  fs::remove_all(folder.path("b/step-000200"));
  EXPECT_TRUE(continueFrom(folder.path("a"), folder.path("b")));
}
