// SPDX-License-Identifier: Apache-2.0
// Proves that a manifest reads back as it was, and that a manifest cut or altered anywhere is refused.
#include "runtime/checkpoint/Manifest.h"

#include "runtime/package/ContentHash.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <limits>

using namespace dg;
using namespace dg::checkpoint;

static const Manifest example = {
    {"lenet", 123, 2, 640, 0xfedcba9876543210u, 60000, "buffer:1024", 0.1 + 0.2, 0.01, "cosine:epochs=3"},
    4096,
    "00112233445566778899aabbccddeeff"};

TEST(Manifest, roundTripIsExact) {
  auto read = manifestFromJson(toJson(example), "manifest.json");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->state, example.state);
  EXPECT_EQ(read->fileBytes, example.fileBytes);
  EXPECT_EQ(read->fileHash, example.fileHash);
}

// JSON has neither NaN nor infinity; a training that diverged must be continued or looked at all the same.
TEST(Manifest, everyDoubleSurvives) {
  using Limits = std::numeric_limits<double>;
  for (double value : {Limits::quiet_NaN(), -Limits::quiet_NaN(), std::bit_cast<double>(0x7ff800000000beefu),
                       Limits::infinity(), -Limits::infinity(), -0.0, Limits::denorm_min(), Limits::max()}) {
    Manifest manifest = example;
    manifest.state.lossSum = value;
    auto read = manifestFromJson(toJson(manifest), "manifest.json");
    ASSERT_TRUE(read) << value << ": " << read.status().message();
    EXPECT_EQ(std::bit_cast<uint64_t>(read->state.lossSum), std::bit_cast<uint64_t>(value)) << value;
  }
}

TEST(Manifest, anOlderOneOfADivergedTrainingIsRead) {
  const std::string older =
      R"({"epoch":0,"file":"model.safetensors","file_bytes":4096,"file_xxh3":"00112233445566778899aabbcc)"
      R"(ddeeff","format":"dg-checkpoint","learning_rate":0.01,"loss_sum":null,"lr_schedule":"constant",)"
      R"("manifest_xxh3":"eac21e1a5a09027c865fa0259372f7b5","mean_loss":null,"model":"lenet","position":)"
      R"(64,"rng":"philox4x32-10","samples":300,"seed":3,"shuffle":"whole","step":7,"version":1})";
  auto read = manifestFromJson(older, "manifest.json");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_TRUE(std::isnan(read->state.lossSum));
  EXPECT_EQ(read->state.step, 7);
}

TEST(Manifest, theOriginIsKept) {
  Manifest manifest = example;
  manifest.state.origin = "ffeeddccbbaa99887766554433221100";
  auto read = manifestFromJson(toJson(manifest), "manifest.json");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->state, manifest.state);
}

TEST(Manifest, everyTruncationIsRefused) {
  std::string text = toJson(example);
  for (size_t size = 0; size + 2 < text.size(); ++size)
    ASSERT_FALSE(manifestFromJson(text.substr(0, size), "manifest.json")) << size;
}

TEST(Manifest, everyAlteredDigitIsRefused) {
  std::string text = toJson(example);
  for (size_t at = 0; at < text.size(); ++at) {
    if (!isalnum(static_cast<unsigned char>(text[at])))
      continue;
    std::string altered = text;
    altered[at] = altered[at] == '1' ? '2' : '1';
    auto read = manifestFromJson(altered, "manifest.json");
    ASSERT_FALSE(read) << altered;
    EXPECT_EQ(read.status().kind(), ErrorKind::badInput);
    EXPECT_NE(read.status().message().find("manifest.json"), std::string::npos);
  }
}

// A run counts on from these numbers: one that overflows, or a place behind the data, would end it.
TEST(Manifest, whatNoRunCountsOnFromIsRefused) {
  auto expectRefused = [](auto change, const std::string &what) {
    Manifest manifest = example;
    change(manifest.state);
    auto read = manifestFromJson(toJson(manifest), "manifest.json");
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.status().kind(), ErrorKind::badInput);
    EXPECT_NE(read.status().message().find(what), std::string::npos) << read.status().message();
  };
  expectRefused([](TrainingState &state) { state.step = INT64_MAX; }, "\"step\", expected");
  expectRefused([](TrainingState &state) { state.epoch = -1; }, "-1 under \"epoch\"");
  expectRefused([](TrainingState &state) { state.position = state.numSamples + 1; },
                "sample 60001 of an epoch of 60000");
  expectRefused([](TrainingState &state) { state.stopping = Best{"loss", 1, 3, INT64_MAX}; }, "\"since\"");
  expectRefused([](TrainingState &state) { state.validation = 1.5; }, "1.5 of the data");
}

// Of a number that is no word of 64 bits another would be taken in silence.
TEST(Manifest, numbersOfAnotherKindAreRefused) {
  for (const char *key : {"seed", "file_bytes"})
    for (const nlohmann::json &number : {nlohmann::json(1e300), nlohmann::json(-1), nlohmann::json(0.5)}) {
      auto json = nlohmann::json::parse(toJson(example));
      json.erase("manifest_xxh3");
      json[key] = number;
      json["manifest_xxh3"] = package::hashOf(json.dump());
      auto read = manifestFromJson(json.dump(2) + "\n", "manifest.json");
      ASSERT_FALSE(read) << key << " " << number;
      EXPECT_NE(read.status().message().find(fmt::format("under \"{}\", expected", key)), std::string::npos)
          << read.status().message();
    }
}

TEST(Manifest, foreignJsonIsRefused) {
  for (const char *text : {"[]", "{}", "null", "{\"format\": 3}", "{\"format\": \"dg-checkpoint\", \"version\": 99}"})
    EXPECT_FALSE(manifestFromJson(text, "manifest.json")) << text;
}
