// SPDX-License-Identifier: Apache-2.0
// Proves that ranks share memory only where all of a host can, and that what a peer says of its memory is checked.
#include "runtime/transport/HostMemory.h"

#include <gtest/gtest.h>

using namespace dg;

namespace {

/// Joins as rank 0 of three on host "a"; the others answer with these texts, first where they are, then whether they
/// have mapped all.
Result<std::unique_ptr<HostMemory>> joinWith(const std::string &second, const std::string &third,
                                             const std::string &mapped = "all") {
  int round = 0;
  return HostMemory::join(0, "a", 4096, [&](const std::string &mine) -> Result<std::vector<std::string>> {
    bool isFirst = round++ == 0;
    auto answer = [&](const std::string &text) { return text == "mine" ? mine : text; };
    return isFirst ? std::vector{mine, answer(second), answer(third)} : std::vector{mine, mapped, mapped};
  });
}

TEST(HostMemory, ranksOfOtherHostsAreNotReached) {
  auto memory = joinWith("mine", "1 2 3 b");
  ASSERT_TRUE(memory) << memory.status().message();
  EXPECT_TRUE((*memory)->reaches({0, 1}));
  EXPECT_TRUE((*memory)->hasNeighbours());
  EXPECT_FALSE((*memory)->reaches({0, 2}));
  EXPECT_FALSE((*memory)->reaches({0, 3}));
  // The same file, seen twice.
  (*memory)->data()[7] = std::byte(42);
  EXPECT_EQ((*memory)->dataOf(1)[7], std::byte(42));
}

TEST(HostMemory, aHostWhereOneCannotMapHasNone) {
  auto hidden = joinWith("mine", "999999999 3 999999999 a");
  ASSERT_TRUE(hidden) << hidden.status().message();
  EXPECT_FALSE((*hidden)->reaches({0, 1}));
  EXPECT_FALSE((*hidden)->hasNeighbours());
  auto refused = joinWith("mine", "mine", "");
  ASSERT_TRUE(refused) << refused.status().message();
  EXPECT_FALSE((*refused)->reaches({0, 1}));
}

TEST(HostMemory, damagedWordsAreAnError) {
  for (const char *text : {"", "1", "1 2 x a", "1 2 3"}) {
    auto memory = joinWith("mine", text);
    ASSERT_FALSE(memory) << text;
    EXPECT_NE(memory.status().message().find("what rank 2 says of its memory is damaged"), std::string::npos);
  }
}

TEST(HostMemory, linesAreFoundByKeyAndRunOut) {
  auto memories = HostMemory::ofThreads(2, 64);
  ASSERT_TRUE(memories) << memories.status().message();
  HostMemory &mine = *(*memories)[0], &other = *(*memories)[1];
  EXPECT_EQ(other.findLine(0, 5), nullptr);
  HostLine *line = mine.takeLine(5);
  EXPECT_EQ(mine.takeLine(5), line);
  EXPECT_EQ(other.findLine(0, 5), line);
  EXPECT_EQ(mine.findLine(1, 5), nullptr);
  uint64_t key = 6;
  while (mine.takeLine(key))
    ASSERT_LT(++key, 1u << 20);
  EXPECT_EQ(mine.takeLine(5), line);
}

// What others look at stays shared, whole huge pages without it become this process's own; nothing moves.
TEST(HostMemory, sharesOnlyWhatOthersSee) {
  constexpr size_t bytes = size_t(16) << 20, page = size_t(2) << 20;
  int round = 0;
  auto made = HostMemory::join(0, "a", bytes, [&](const std::string &mine) -> Result<std::vector<std::string>> {
    return round++ == 0 ? std::vector{mine, mine} : std::vector<std::string>{mine, "all"};
  });
  ASSERT_TRUE(made) << made.status().message();
  HostMemory &memory = **made;
  std::byte *before = memory.data();
  ASSERT_TRUE(memory.shareOnly({{9 * page / 2, 5 * page}, {100, 200}, {150, 160}}));
  EXPECT_EQ(memory.data(), before);
  for (size_t at : {size_t(100), page - 1, page, 3 * page, 9 * page / 2, 5 * page - 1, 6 * page, 8 * page - 1})
    memory.data()[at] = std::byte(7);
  for (size_t at : {size_t(100), page - 1, 9 * page / 2, 5 * page - 1})
    EXPECT_EQ(memory.dataOf(1)[at], std::byte(7)) << at;
  for (size_t at : {page, 3 * page, 6 * page, 8 * page - 1})
    EXPECT_EQ(memory.dataOf(1)[at], std::byte(0)) << at;
  Status again = memory.shareOnly({});
  EXPECT_NE(again.message().find("is in use already"), std::string::npos) << again.message();
}

TEST(HostMemory, offsetsStayInside) {
  auto memories = HostMemory::ofThreads(1, 100);
  ASSERT_TRUE(memories) << memories.status().message();
  HostMemory &memory = *(*memories)[0];
  EXPECT_EQ(memory.offsetOf(memory.data() + 40, 60), 40u);
  EXPECT_EQ(memory.offsetOf(memory.data() + 40, 61), HostMemory::npos);
  EXPECT_EQ(memory.offsetOf(memory.data() - 1, 1), HostMemory::npos);
  EXPECT_EQ(memory.offsetOf(nullptr, 0), 0u);
}

} // namespace
