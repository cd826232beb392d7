// SPDX-License-Identifier: Apache-2.0
// Proves that JSON from outside is bounded in depth and size before it is built, that a file without end is refused,
// and that no name from a file reaches a terminal with a control character.
#include "runtime/support/FileReading.h"
#include "runtime/support/Json.h"
#include "runtime/support/Printable.h"

#include <gtest/gtest.h>

#include <random>

using namespace dg;

namespace {

void expectRefused(const Status &status, std::initializer_list<std::string> words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), ErrorKind::badInput);
  for (const std::string &word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

} // namespace

TEST(Json, depthIsBounded) {
  const size_t most = JsonBounds().depth;
  EXPECT_TRUE(parseJson(nested(most), "f"));
  expectRefused(parseJson(nested(most + 1), "some/file").status(), {"some/file", "nested more than 64 deep"});
  std::string objects;
  for (int i = 0; i < 200'000; ++i)
    objects += "{\"a\":";
  expectRefused(parseJson(objects, "f").status(), {"nested"});
  expectRefused(parseJson<nlohmann::ordered_json>(nested(200'000), "f").status(), {"nested"});
}

TEST(Json, bracketsInStringsDoNotCount) {
  auto read = parseJson("[\"" + std::string(1000, '[') + "\", \"\\\"[[\\\\\", 1]", "f");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ((*read)[1], "\"[[\\");
}

TEST(Json, sizeIsBounded) {
  EXPECT_FALSE(checkJsonBounds("[1,2,3]", "f", {.bytes = 6, .depth = 2}));
  EXPECT_TRUE(checkJsonBounds("[1,2,3]", "f", {.bytes = 7, .depth = 2}));
}

TEST(Json, whereItStopsIsNamed) {
  expectRefused(parseJson("[1,", "f").status(), {"f: not JSON, stopped at byte 3 of 3"});
}

// The bound never refuses what is shallow, whatever quotes and backslashes it has: nlohmann is the oracle.
TEST(Json, agreesWithTheParserOnShallowText) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  const std::string letters = "[]{}\",:\\1a ";
  int numRead = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 12, ' ');
    for (char &c : text)
      c = letters[random() % letters.size()];
    const bool expected = nlohmann::json::accept(text);
    numRead += expected;
    ASSERT_EQ(parseJson(text, "f").isOk(), expected) << text << ", seed " << seed;
  }
  EXPECT_GT(numRead, 100) << "seed " << seed;
}

TEST(FileReading, aFileWithoutEndIsRefused) {
  expectRefused(readText("/dev/zero", 1 << 20).status(), {"/dev/zero", "more than 1048576 bytes"});
  expectRefused(readText("/nowhere/at/all", 1).status(), {"/nowhere/at/all", "No such file"});
}

TEST(Printable, controlCharactersAreShown) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable(std::string_view("\0\x7f\r\x07", 4)), "\\x00\\x7f\\x0d\\x07");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "CSI as one character of C1";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "and as a bare byte";
  EXPECT_EQ(printable("tab\tand\nline"), "tab\tand\nline");
  EXPECT_EQ(printable("größe → 中 😀"), "größe → 中 😀");
  EXPECT_EQ(printable("\xe4\xb8"), "\\xe4\\xb8") << "cut in the middle";
}
