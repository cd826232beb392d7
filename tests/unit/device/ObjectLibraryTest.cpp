// SPDX-License-Identifier: Apache-2.0
// Proves that kernels load from bytes in memory, and that objects of another version, foreign ones and damaged ones are
// refused by name.
#include "runtime/device/host/ObjectLibrary.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace dg {
namespace {

std::vector<std::byte> bytesOf(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
  auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return {begin, begin + text.size()};
}

TEST(ObjectLibraryTest, kernelFromMemoryRuns) {
  std::vector<std::byte> bytes = bytesOf(DG_GOOD_OBJECT);
  ASSERT_FALSE(bytes.empty());
  auto library = ObjectLibrary::load(bytes, "train.native.so");
  ASSERT_TRUE(library) << library.status().message();
  std::fill(bytes.begin(), bytes.end(), std::byte(0));
  dg_kernel kernel = (*library)->find("add_one");
  ASSERT_NE(kernel, nullptr);
  float input[2] = {1, 2}, output[2] = {};
  void *buffers[] = {input, output};
  dg_scalars scalars{};
  scalars.lr = 0.5f;
  kernel(buffers, &scalars, 0);
  kernel(buffers, &scalars, 1);
  EXPECT_EQ(output[0], 2.5f);
  EXPECT_EQ(output[1], 3.5f);
  EXPECT_EQ((*library)->find("subtract_one"), nullptr);
  EXPECT_EQ((*library)->tilesOf("add_one"), 3u);
  EXPECT_EQ((*library)->tilesOf("subtract_one"), std::nullopt);
}

TEST(ObjectLibraryTest, twoObjectsAreTwoObjects) {
  auto library = ObjectLibrary::load(bytesOf(DG_GOOD_OBJECT), "train.native.so");
  ASSERT_TRUE(library);
  ASSERT_TRUE((*library)->add(bytesOf(DG_GOOD_OBJECT), "eval.native.so"));
  EXPECT_NE((*library)->find("add_one"), nullptr);
  auto other = ObjectLibrary::load(bytesOf(DG_GOOD_OBJECT), "train.native.so");
  ASSERT_TRUE(other);
  EXPECT_NE((*other)->find("add_one"), (*library)->find("add_one"));
}

TEST(ObjectLibraryTest, otherVersionIsRefused) {
  auto library = ObjectLibrary::load(bytesOf(DG_OLD_OBJECT), "train.native.so");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.status().kind(), ErrorKind::badInput);
  EXPECT_EQ(library.status().message(), fmt::format("object 'train.native.so' has kernel ABI version 99, expected {}; "
                                                    "compile the job again with this dgc",
                                                    DG_ABI_VERSION));
}

TEST(ObjectLibraryTest, foreignAndDamagedObjectsAreRefused) {
  auto foreign = ObjectLibrary::load(bytesOf(DG_FOREIGN_OBJECT), "train.native.so");
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.status().message().find("has no symbol 'dg_abi_version'"), std::string::npos);

  std::vector<std::byte> truncated = bytesOf(DG_GOOD_OBJECT);
  truncated.resize(100);
  for (const std::vector<std::byte> &bytes : {truncated, std::vector<std::byte>{}}) {
    auto damaged = ObjectLibrary::load(bytes, "train.native.so");
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.status().kind(), ErrorKind::badInput);
    EXPECT_NE(damaged.status().message().find("object 'train.native.so' cannot be loaded"), std::string::npos);
  }
}

} // namespace
} // namespace dg
