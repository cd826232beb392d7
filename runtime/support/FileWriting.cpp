// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace dg {

int writeAllAt(int file, const void *data, size_t bytes, uint64_t offset) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::pwrite(file, from, bytes, off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : ENOSPC;
    from += count, bytes -= size_t(count), offset += uint64_t(count);
  }
  return 0;
}

int syncFolder(const std::string &path) {
  int folder = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return errno;
  int code = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  // A file system that cannot synchronise folders (some FUSE and network ones) has no other way to be asked.
  return code == EINVAL || code == ENOTSUP ? 0 : code;
}

int makeFolders(const std::string &path) {
  namespace fs = std::filesystem;
  fs::path folder = path;
  if (!folder.has_filename()) // a slash at the end
    folder = folder.parent_path();
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error))
    return 0;
  if (int code = makeFolders(folder.parent_path().string()); code != 0)
    return code;
  if (!fs::create_directory(folder, error) && error)
    return error.value();
  return syncFolder(folder.parent_path().string());
}

} // namespace dg
