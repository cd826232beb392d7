// SPDX-License-Identifier: Apache-2.0
// Proves that a manifest reads back as it was, and that a manifest cut or altered anywhere is refused.
#include "runtime/checkpoint/Manifest.h"

#include <gtest/gtest.h>

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

TEST(Manifest, foreignJsonIsRefused) {
  for (const char *text : {"[]", "{}", "null", "{\"format\": 3}", "{\"format\": \"dg-checkpoint\", \"version\": 99}"})
    EXPECT_FALSE(manifestFromJson(text, "manifest.json")) << text;
}
