// SPDX-License-Identifier: Apache-2.0
// Proves that flags of /proc/cpuinfo are found under the names that compilers use, and that what a host lacks is named.
#include "runtime/session/TargetSupport.h"

#include <gtest/gtest.h>

namespace dg::session {
namespace {

TEST(TargetSupport, namesOfCompilers) {
  EXPECT_EQ(compilerName("avx512_bf16"), "avx512bf16");
  EXPECT_EQ(compilerName("avx512vl"), "avx512vl");
  EXPECT_EQ(compilerName("amx_tile"), "amx-tile");
  EXPECT_EQ(compilerName("amx_bf16"), "amx-bf16");
  EXPECT_EQ(compilerName("bmi1"), "bmi");
}

TEST(TargetSupport, missingFeaturesAreNamed) {
  EXPECT_TRUE(missingFeatures("").empty());
  ASSERT_FALSE(hostFeatures().empty());
  EXPECT_EQ(missingFeatures(hostFeatures().front() + ",no-such-thing"), std::vector<std::string>{"no-such-thing"});
}

TEST(TargetSupport, tilesAreAskedFor) {
  bool hasTiles = missingFeatures("amx-tile").empty();
  Status tiles = requestTiles();
  // A kernel may refuse them also where the processor has them.
  if (!tiles) {
    EXPECT_NE(tiles.message().find("gives no AMX tiles to this process"), std::string::npos) << tiles.message();
    EXPECT_NE(tiles.message().find("--target x86-64-v4"), std::string::npos) << tiles.message();
  }
  EXPECT_TRUE(hasTiles || !tiles);
  EXPECT_EQ(refusalOf(hostFeatures().front()), "");
  EXPECT_EQ(refusalOf("amx-tile").empty(), hasTiles && tiles.isOk());
  EXPECT_EQ(refusalOf("no-such-thing"), "this host lacks no-such-thing");
}

} // namespace
} // namespace dg::session
