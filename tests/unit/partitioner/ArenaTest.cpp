// SPDX-License-Identifier: Apache-2.0
// Proves that packed blocks never overlap while both live, that the lower bound is one, and that packing is tight and
// quick.
#include "partitioner/memory/Arena.h"
#include "tests/unit/partitioner/TimeLimit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

using namespace dg::partitioner;

/// Checks every pair of blocks, and the lower bound moment by moment.
static void checkPacking(const std::vector<Block> &blocks, const Packing &packing) {
  ASSERT_EQ(packing.offsets.size(), blocks.size());
  uint64_t end = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % arenaAlignment, 0u);
    end = std::max(end, packing.offsets[i] + blocks[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      bool meetInTime = blocks[i].firstUse <= blocks[j].lastUse && blocks[j].firstUse <= blocks[i].lastUse;
      bool meetInSpace = packing.offsets[i] < packing.offsets[j] + blocks[j].bytes &&
                         packing.offsets[j] < packing.offsets[i] + blocks[i].bytes;
      ASSERT_FALSE(meetInTime && meetInSpace && blocks[i].bytes && blocks[j].bytes) << i << " and " << j;
    }
  }
  EXPECT_LE(end, packing.bytes);
  EXPECT_LT(packing.bytes - end, arenaAlignment);
  uint64_t most = 0;
  for (const Block &moment : blocks) {
    uint64_t live = 0;
    for (const Block &block : blocks)
      if (block.firstUse <= moment.firstUse && moment.firstUse <= block.lastUse)
        live += (block.bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
    most = std::max(most, live);
  }
  EXPECT_EQ(packing.lowerBoundBytes, most);
  EXPECT_GE(packing.bytes, most);
}

// Random blocks of all shapes never overlap; the ratio to the lower bound is printed and stays small.
TEST(ArenaTest, RandomBlocksNeverOverlap) {
  const uint32_t seed = 20261116;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  double worst = 1, sum = 0;
  const int numRounds = 300;
  for (int round = 0; round < numRounds; ++round) {
    std::vector<Block> blocks(1 + random() % 150);
    for (Block &block : blocks) {
      block.bytes = random() % 8 ? random() % 100000 : random() % 3;
      block.firstUse = random() % 100;
      block.lastUse = block.firstUse + random() % (1 + random() % 60);
    }
    Packing packing = packArena(blocks);
    checkPacking(blocks, packing);
    double ratio = packing.lowerBoundBytes ? double(packing.bytes) / double(packing.lowerBoundBytes) : 1;
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  std::cout << "ratio to the lower bound: mean " << sum / numRounds << ", worst " << worst << "\n";
  EXPECT_LT(worst, 1.35);
}

/// A training step of `layers` equal layers: saved activations live from forward to backward, gradients a moment.
static std::vector<Block> makeTrainingStep(uint32_t layers, std::mt19937 &random) {
  std::vector<Block> blocks;
  for (uint32_t l = 0; l < layers; ++l) {
    uint32_t backward = 2 * layers - l;
    uint64_t bytes = 1000 * (1 + random() % 8);
    blocks.push_back({bytes, l, backward});
    blocks.push_back({4 * bytes, l, l + 1});
    blocks.push_back({bytes, backward, backward + 1});
    blocks.push_back({2 * bytes, backward, backward});
  }
  return blocks;
}

// Blocks as a training step makes them are packed within a tenth of the lower bound.
TEST(ArenaTest, TrainingStepIsTight) {
  std::mt19937 random(7);
  std::vector<Block> blocks = makeTrainingStep(200, random);
  Packing packing = packArena(blocks);
  checkPacking(blocks, packing);
  double ratio = double(packing.bytes) / double(packing.lowerBoundBytes);
  std::cout << "ratio to the lower bound: " << ratio << "\n";
  EXPECT_LT(ratio, 1.1);
}

// Neighbours in time may not share memory when the last use of one is the first use of the other.
TEST(ArenaTest, LastUseIsIncluded) {
  Packing packing = packArena({{64, 0, 1}, {64, 1, 2}, {64, 2, 3}});
  EXPECT_EQ(packing.bytes, 128u);
  EXPECT_EQ(packing.offsets[0], packing.offsets[2]);
}

// Nothing, and blocks of no bytes, need nothing.
TEST(ArenaTest, EmptyIsEmpty) {
  EXPECT_EQ(packArena({}).bytes, 0u);
  EXPECT_EQ(packArena({{0, 0, 3}}).bytes, 0u);
}

// The same blocks give the same offsets.
TEST(ArenaTest, IsDeterministic) {
  std::mt19937 random(3);
  std::vector<Block> blocks = makeTrainingStep(50, random);
  EXPECT_EQ(packArena(blocks).offsets, packArena(blocks).offsets);
}

// 20,000 blocks take less than two processor seconds, whether few or nearly all of them meet.
TEST(ArenaTest, IsQuick) {
  std::mt19937 random(5);
  std::vector<Block> crowded(20000);
  for (Block &block : crowded) {
    block.bytes = 1 + random() % 1000000;
    block.firstUse = random() % 20000;
    block.lastUse = block.firstUse + random() % 20000;
  }
  for (const std::vector<Block> &blocks : {makeTrainingStep(5000, random), crowded}) {
    std::clock_t start = std::clock(); // processor time: other tests may run beside this one
    Packing packing = packArena(blocks);
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    std::cout << blocks.size() << " blocks: " << seconds << " s, ratio "
              << double(packing.bytes) / double(packing.lowerBoundBytes) << "\n";
    EXPECT_LT(seconds, 2 * dg::timeLimitFactor);
  }
}
