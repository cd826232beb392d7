// SPDX-License-Identifier: Apache-2.0
// Search of /dev/shm and /proc for shared memory files without an owner.
#include "runtime/launch/ranks/OrphanSegments.h"

#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

namespace dg {
namespace {

struct Segment {
  std::string path;
  dev_t device;
  ino_t inode;
};

double secondsOf(timespec time) { return double(time.tv_sec) + double(time.tv_nsec) * 1e-9; }

template <typename Visit> void forEachEntry(const std::string &path, Visit visit) {
  std::unique_ptr<DIR, int (*)(DIR *)> directory(opendir(path.c_str()), closedir);
  while (directory)
    if (const dirent *entry = readdir(directory.get()))
      visit(entry->d_name);
    else
      break;
}

void forget(std::vector<Segment> &segments, dev_t device, ino_t inode) {
  std::erase_if(segments, [&](const Segment &segment) { return segment.device == device && segment.inode == inode; });
}

/// Drops the segments that the process has open or mapped.
void forgetUsed(std::vector<Segment> &segments, const std::string &process) {
  forEachEntry(process + "/fd", [&](const char *name) {
    struct stat status;
    if (stat((process + "/fd/" + name).c_str(), &status) == 0)
      forget(segments, status.st_dev, status.st_ino);
  });
  std::unique_ptr<FILE, int (*)(FILE *)> maps(std::fopen((process + "/maps").c_str(), "r"), std::fclose);
  if (!maps)
    return;
  char line[4352];
  while (std::fgets(line, sizeof line, maps.get())) {
    unsigned major, minor;
    unsigned long inode;
    if (std::sscanf(line, "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) == 3 && inode != 0)
      forget(segments, makedev(major, minor), inode);
  }
}

} // namespace

void removeOrphanSegments(timespec since) {
  std::vector<Segment> segments;
  double newest = 0;
  forEachEntry("/dev/shm", [&](const char *name) {
    std::string path = std::string("/dev/shm/") + name;
    struct stat status;
    if (std::strncmp(name, "ucx_shm_posix_", 14) != 0 || lstat(path.c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        secondsOf(status.st_ctim) < secondsOf(since) - 0.02) // the kernel's stamp is coarse
      return;
    segments.push_back({path, status.st_dev, status.st_ino});
    newest = std::max(newest, secondsOf(status.st_ctim));
  });
  if (segments.empty())
    return;
  // A file of another, living job is in the same short state: a second later it has no name any more, or someone uses
  // it.
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (double left = newest + 1 - secondsOf(now); left > 0)
    usleep(useconds_t(std::min(left, 1.0) * 1e6));
  forEachEntry("/proc", [&](const char *name) {
    if (name[0] >= '1' && name[0] <= '9')
      forgetUsed(segments, std::string("/proc/") + name);
  });
  for (const Segment &segment : segments) {
    struct stat status;
    if (lstat(segment.path.c_str(), &status) == 0 && status.st_ino == segment.inode)
      unlink(segment.path.c_str());
  }
}

} // namespace dg
