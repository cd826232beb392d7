// SPDX-License-Identifier: Apache-2.0
// Proves that a shared memory file which a killed rank left is removed, and one that anybody uses, or that is older or
// named otherwise, is not.
#include "runtime/launch/ranks/OrphanSegments.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace dg;

namespace {

/// A file in /dev/shm for the time of a test.
struct SharedFile {
  explicit SharedFile(const std::string &name) : path("/dev/shm/" + name + std::to_string(getpid())) {
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_EQ(0, ftruncate(descriptor, 4096));
  }
  ~SharedFile() {
    closeFile();
    unlink(path.c_str());
  }
  void closeFile() {
    if (descriptor >= 0)
      close(descriptor);
    descriptor = -1;
  }
  bool exists() const { return access(path.c_str(), F_OK) == 0; }
  std::string path;
  int descriptor;
};

TEST(OrphanSegments, onlyTheUnusedGo) {
  SharedFile older("ucx_shm_posix_older");
  older.closeFile();
  timespec since;
  clock_gettime(CLOCK_REALTIME, &since);
  since.tv_sec += 1; // a launch that began after the file was made
  removeOrphanSegments(since);
  EXPECT_TRUE(older.exists());

  since.tv_sec -= 2;
  SharedFile orphan("ucx_shm_posix_orphan"), isOpen("ucx_shm_posix_open"), isMapped("ucx_shm_posix_mapped"),
      other("other_");
  void *mapping = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, isMapped.descriptor, 0);
  orphan.closeFile();
  isMapped.closeFile();
  other.closeFile();
  removeOrphanSegments(since);
  EXPECT_FALSE(orphan.exists());
  EXPECT_TRUE(isOpen.exists());
  EXPECT_TRUE(isMapped.exists());
  EXPECT_TRUE(other.exists());
  munmap(mapping, 4096);
}

} // namespace
