// SPDX-License-Identifier: Apache-2.0
// Code from the cache is the code that would have been generated; what is damaged, foreign or of another compiler or
// target is generated anew; nothing that happens to the folder fails a compilation.
#include "codegen/cpu/ObjectCache.h"
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

using namespace dg;
using namespace dg::codegen;
namespace fs = std::filesystem;

namespace {

class ObjectCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "/object_cache_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
  }
  void TearDown() override {
    chmod(folder.c_str(), 0700);
    fs::remove_all(folder);
  }
  /// The shared object of three kernels.
  std::string build(const ObjectCache *cache, CodeTimes &times) {
    KernelCases cases("x86-64-v3");
    for (const char *op : {"dg.relu", "dg.tanh", "dg.exp"})
      EXPECT_TRUE(succeeded(cases.kernels().addKernel(cases.make(op, {"64x20xf32"}, ""))));
    auto object = cases.kernels().emitObject({cache, nullptr, &times});
    return failed(object) ? "" : *object;
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> found;
    for (const auto &entry : fs::directory_iterator(folder))
      if (entry.path().filename() != "llvmcache.timestamp")
        found.push_back(entry.path());
    return found;
  }
  std::string folder;
};

TEST_F(ObjectCacheTest, GivesTheCodeThatWouldBeGenerated) {
  CodeTimes none, cold, warm;
  Result<ObjectCache> cache = ObjectCache::open(folder);
  ASSERT_TRUE(bool(cache)) << cache.status().message();
  std::string plain = build(nullptr, none), first = build(&*cache, cold), second = build(&*cache, warm);
  EXPECT_EQ(plain.substr(1, 3), "ELF");
  EXPECT_EQ(plain, first);
  EXPECT_EQ(plain, second);
  EXPECT_EQ(cold.cached, 0u);
  EXPECT_EQ(warm.cached, warm.kernels);
  EXPECT_EQ(files().size(), warm.kernels);
}

TEST_F(ObjectCacheTest, DamageCountsAsMissing) {
  CodeTimes cold, warm;
  Result<ObjectCache> cache = ObjectCache::open(folder);
  ASSERT_TRUE(bool(cache));
  std::string whole = build(&*cache, cold);
  std::vector<fs::path> stored = files();
  ASSERT_EQ(stored.size(), 4u); // three kernels and the number of the ABI
  fs::resize_file(stored[0], 100);
  fs::resize_file(stored[1], 3);
  std::fstream(stored[2], std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('\x5a');
  EXPECT_EQ(build(&*cache, warm), whole);
  EXPECT_EQ(warm.cached, 1u);
  CodeTimes again;
  EXPECT_EQ(build(&*cache, again), whole);
  EXPECT_EQ(again.cached, 4u);
}

TEST_F(ObjectCacheTest, KeysDependOnKernelAndTarget) {
  Result<ObjectCache> cache = ObjectCache::open(folder);
  ASSERT_TRUE(bool(cache));
  std::string error;
  Target v3 = *Target::parse("x86-64-v3", error), v4 = *Target::parse("x86-64-v4", error), features = v3;
  features.features = "+avx512f";
  EXPECT_NE(cache->keyOf("a", v3), cache->keyOf("b", v3));
  EXPECT_NE(cache->keyOf("a", v3), cache->keyOf("a", v4));
  EXPECT_NE(cache->keyOf("a", v3), cache->keyOf("a", features));
  EXPECT_FALSE(cache->find(cache->keyOf("a", v3)));
}

TEST_F(ObjectCacheTest, AFolderThatOthersCanWriteIsRefused) {
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  Result<ObjectCache> cache = ObjectCache::open(folder);
  ASSERT_FALSE(bool(cache));
  EXPECT_NE(cache.status().message().find("can be written by others"), std::string::npos) << cache.status().message();
  std::ofstream(folder + "/file") << "x";
  EXPECT_FALSE(bool(ObjectCache::open(folder + "/file")));
  EXPECT_FALSE(bool(ObjectCache::open(folder + "/file/below")));
}

TEST_F(ObjectCacheTest, AFolderThatVanishesFailsNothing) {
  CodeTimes none, gone;
  Result<ObjectCache> cache = ObjectCache::open(folder + "/deep/er");
  ASSERT_TRUE(bool(cache));
  fs::remove_all(folder + "/deep");
  EXPECT_EQ(build(&*cache, gone), build(nullptr, none));
  cache->prune();
  EXPECT_FALSE(fs::exists(folder + "/deep/er/llvmcache.timestamp"));
}

TEST_F(ObjectCacheTest, ThreadsShareIt) {
  CodeTimes none;
  std::string plain = build(nullptr, none);
  std::vector<std::string> made(4);
  std::vector<std::thread> threads;
  for (std::string &each : made)
    threads.emplace_back([&] {
      CodeTimes times;
      Result<ObjectCache> cache = ObjectCache::open(folder);
      for (int round = 0; round < 5; ++round)
        each = build(&*cache, times);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(made, std::vector<std::string>(4, plain));
  for (const fs::path &file : files())
    EXPECT_NE(file.extension(), ".partial");
}

} // namespace
