// SPDX-License-Identifier: Apache-2.0
// Proves that files and folders are written whole or not without a word. That they survive a power failure cannot be
// tested here; that what should be synchronised can be is.
#include "runtime/support/FileWriting.h"
#include "tests/unit/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <set>
#include <unistd.h>

using namespace dg;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(FileWriting, bytesGoWhereTheyShould) {
  TemporaryFolder folder;
  int file = open(folder.write("file", "0123456789").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(0, writeAllAt(file, "abc", 3, 4));
  EXPECT_EQ(0, writeAllAt(file, nullptr, 0, 100));
  char bytes[20] = "";
  EXPECT_EQ(10, pread(file, bytes, sizeof bytes, 0));
  EXPECT_STREQ("0123abc789", bytes);
  close(file);
}

TEST(FileWriting, aFullDiskIsTold) {
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0)
    GTEST_SKIP() << "there is no /dev/full";
  EXPECT_EQ(ENOSPC, writeAllAt(full, "abc", 3, 0));
  close(full);
  EXPECT_EQ(EBADF, writeAllAt(-1, "abc", 3, 0));
}

TEST(FileWriting, foldersAreMadeWithThoseAbove) {
  TemporaryFolder folder;
  for (const char *name : {"a/b/c", "a/b/c", "a/b/d/", "e/./f/../g"}) {
    EXPECT_EQ(0, makeFolders(folder.path(name))) << name;
    EXPECT_TRUE(fs::is_directory(folder.path(name))) << name;
  }
  EXPECT_EQ(0, makeFolders("/"));
  EXPECT_EQ(0, makeFolders("."));
  folder.write("file", "");
  EXPECT_EQ(EEXIST, makeFolders(folder.path("file")));
  EXPECT_EQ(EEXIST, makeFolders(folder.path("file/below")));
}

TEST(FileWriting, foldersAreSynchronised) {
  TemporaryFolder folder;
  EXPECT_EQ(0, syncFolder("")); // the current one
  EXPECT_EQ(0, syncFolder(folder.path("")));
  EXPECT_EQ(ENOENT, syncFolder(folder.path("missing")));
  EXPECT_EQ(ENOTDIR, syncFolder(folder.write("file", "")));
}

TEST(FileWriting, aFileIsWrittenWholeAndALinkStaysOne) {
  TemporaryFolder folder;
  const std::string path = folder.write("file", "before"), link = folder.path("link"), far = folder.path("far");
  fs::create_symlink("file", link);
  fs::create_symlink("link", far);
  EXPECT_EQ(path, followLinks(far));
  EXPECT_EQ(path, followLinks(path));
  ASSERT_TRUE(writeFile(far, "after"));
  EXPECT_TRUE(fs::is_symlink(far));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(5u, fs::file_size(path));
  ASSERT_TRUE(writeFile(folder.path("new"), ""));
  EXPECT_EQ(4, std::distance(fs::directory_iterator(folder.path("")), {})) << "nothing is left beside them";
}

TEST(FileWriting, whatCannotBeWrittenIsTold) {
  TemporaryFolder folder;
  for (const std::string &path : {std::string("/dev/full"), folder.path("missing/file"), folder.path("")}) {
    Status status = writeFile(path, "abc");
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.message().find(path + ": cannot be written: "), 0u) << status.message();
  }
  EXPECT_TRUE(fs::is_empty(folder.path("")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(FileWriting, whatAWriterLeftADayAgoIsReclaimed) {
  TemporaryFolder folder;
  const std::string target = folder.path("file");
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(25);
  for (const char *name :
       {"file.0000000000000000.partial", "file.0000000000000000.partial.Ab1", // a library's, beside it
        "file.000000000000000g.partial", "other.0000000000000000.partial", "file.partial"})
    fs::last_write_time(folder.write(name, ""), old);
  folder.write("file.1111111111111111.partial", ""); // another writer's, at work
  ASSERT_TRUE(writeFile(target, "text"));
  std::set<std::string> left;
  for (const auto &entry : fs::directory_iterator(folder.path("")))
    left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"file", "file.000000000000000g.partial", "file.1111111111111111.partial",
                                         "file.partial", "other.0000000000000000.partial"}));
}
