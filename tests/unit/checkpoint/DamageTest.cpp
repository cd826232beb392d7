// SPDX-License-Identifier: Apache-2.0
// Proves that a checkpoint with any bit of any of its files altered, or cut anywhere, is refused and never read. That
// of a package is in tests/unit/package.
#include "runtime/checkpoint/Checkpoint.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <random>
#include <unistd.h>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::keptValue;
using dg::test::SimulatedRanks;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

/// A checkpoint of 64 KiB of tensors, with everything in its manifest that can be.
class Damage : public testing::Test {
protected:
  void SetUp() override {
    plan.model.name = "toy";
    plan.mesh.sizes = {1, 1, 1};
    plan.values = {keptValue(plan.mesh, "weight", 0, {128, 120}, {"", ""}),
                   keptValue(plan.mesh, "bias", 0, {1000}, {""}, plan::ValueKind::state)};
    SimulatedRanks ranks(plan);
    for (size_t i = 0; i < ranks.valueOf(0, 0).size(); ++i)
      ranks.valueOf(0, 0)[i] = float(i);
    TrainingState state = {"toy", 100, 2, 40, 7, 1000, "whole", 1.5, 1e-5, "constant"};
    state.kept = state.stopping = Best{"accuracy", 0.5, 90, 1};
    state.validation = 0.1;
    state.origin = "00112233445566778899aabbccddeeff";
    state.plateau.factor = 0.5;
    for (const auto &result : ranks.write(folder.path("ckpt"), state))
      ASSERT_TRUE(result) << result.status().message();
    ASSERT_TRUE(Checkpoint::open(folder.path("ckpt")));
  }
  /// Whether what reads checkpoints takes it, damaged as it is now.
  bool isTaken() const { return bool(Checkpoint::open(folder.path("ckpt"))); }
  std::vector<std::string> files() const {
    return {folder.path("ckpt/step-000100/model.safetensors"), folder.path("ckpt/step-000100/manifest.json")};
  }
  TemporaryFolder folder;
  plan::Plan plan;
};

} // namespace

TEST_F(Damage, everyFlippedBitIsFound) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (const std::string &path : files()) {
    const uint64_t numBits = 8 * fs::file_size(path);
    constexpr uint64_t mostFlips = 10000;
    const bool isEvery = numBits <= 2 * mostFlips; // all of the manifest
    int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    for (uint64_t i = 0; i < (isEvery ? numBits : mostFlips); ++i) {
      const uint64_t bit = isEvery ? i : random() % numBits;
      char byte = 0;
      ASSERT_EQ(::pread(file, &byte, 1, off_t(bit / 8)), 1);
      const char altered = char(byte ^ (1 << bit % 8));
      ASSERT_EQ(::pwrite(file, &altered, 1, off_t(bit / 8)), 1);
      ASSERT_FALSE(isTaken()) << path << ": bit " << bit;
      ASSERT_EQ(::pwrite(file, &byte, 1, off_t(bit / 8)), 1);
    }
    ::close(file);
    ASSERT_TRUE(isTaken());
  }
}

TEST_F(Damage, everyTruncationIsFound) {
  for (const std::string &path : files()) {
    const uint64_t size = fs::file_size(path);
    const fs::path whole = folder.path("whole");
    fs::copy_file(path, whole, fs::copy_options::overwrite_existing);
    constexpr uint64_t block = 4096, nearEnd = 4096;
    for (uint64_t left = 0; left < size; left += left + nearEnd < size ? block : 1) {
      fs::resize_file(path, left);
      ASSERT_FALSE(isTaken()) << path << ": " << left << " of " << size << " bytes";
      fs::resize_file(path, size); // zeros where there were others
      ASSERT_FALSE(isTaken()) << path << ": " << left << " of " << size << " bytes, then zeros";
      fs::copy_file(whole, path, fs::copy_options::overwrite_existing);
    }
    ASSERT_TRUE(isTaken());
  }
}
