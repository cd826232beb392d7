// SPDX-License-Identifier: Apache-2.0
// Proves that what is read as a user's own file or kept in his own folder cannot have been written by another.
#include "runtime/support/FileReading.h"
#include "runtime/support/CacheFolder.h"
#include "tests/unit/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

using namespace dg;

TEST(FileReading, OwnTextIsOfThisUserAlone) {
  test::TemporaryFolder folder;
  const std::string own = folder.write("own", "text");
  ::chmod(own.c_str(), 0644);
  auto text = readOwnText(own, 4);
  ASSERT_TRUE(text) << text.status().message();
  EXPECT_EQ(*text, "text");
  EXPECT_FALSE(readOwnText(own, 3)) << "more bytes than are wanted";
  EXPECT_FALSE(readOwnText(folder.path("none"), 4));

  ::chmod(own.c_str(), 0664);
  EXPECT_FALSE(readOwnText(own, 4)) << "the group can write it";
  ::chmod(own.c_str(), 0644);
  ASSERT_EQ(::symlink(own.c_str(), folder.path("link").c_str()), 0);
  EXPECT_FALSE(readOwnText(folder.path("link"), 4));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(readOwnText(folder.path("pipe"), 4)) << "nobody writes it: it is not waited for";
  if (::geteuid() == 0) { // only root can give a file away
    ASSERT_EQ(::chown(own.c_str(), 64001, 64001), 0);
    EXPECT_FALSE(readOwnText(own, 4)) << "another user's";
  }
}

TEST(CacheFolder, IsMadeForItsOwnerAlone) {
  test::TemporaryFolder folder;
  const std::string kept = folder.path("a/b/");
  Status made = makePrivateFolder(kept, "plans");
  ASSERT_TRUE(made) << made.message();
  struct stat facts;
  ASSERT_EQ(::stat(kept.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  EXPECT_TRUE(makePrivateFolder(kept, "plans")) << "it is there";

  ::chmod(kept.c_str(), 0777);
  Status open = makePrivateFolder(kept, "plans");
  ASSERT_FALSE(open);
  EXPECT_NE(open.message().find("others, who would choose plans"), std::string::npos) << open.message();
  EXPECT_FALSE(makePrivateFolder(folder.write("file", ""), "plans"));
}
