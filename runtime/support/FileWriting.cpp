// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

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

std::string followLinks(const std::string &path) {
  constexpr int mostLinks = 40; // as many as the kernel follows
  fs::path target = path;
  std::error_code error;
  for (int links = 0; links < mostLinks && fs::is_symlink(fs::symlink_status(target, error)); ++links)
    target = target.parent_path() / fs::read_symlink(target, error);
  return target.string();
}

/// Returns 0 or errno.
static int writeTo(const std::string &path, std::string_view text) {
  std::FILE *file = std::fopen(path.c_str(), "wbe");
  if (!file)
    return errno;
  int code = std::fwrite(text.data(), 1, text.size(), file) == text.size() ? 0 : errno;
  if (std::fclose(file) != 0 && code == 0)
    code = errno;
  return code;
}

Status writeFile(const std::string &path, std::string_view text) {
  std::error_code error;
  fs::file_status found = fs::status(path, error);
  int code = 0;
  if (fs::exists(found) && !fs::is_regular_file(found)) {
    code = writeTo(path, text);
  } else {
    const std::string target = followLinks(path), partial = fmt::format("{}.{}.partial", target, getpid());
    code = writeTo(partial, text);
    if (code == 0 && std::rename(partial.c_str(), target.c_str()) != 0)
      code = errno;
    if (code != 0)
      unlink(partial.c_str());
  }
  if (code != 0)
    return Status::error(ErrorKind::runFailed, "{}: cannot be written: {}", path, std::strerror(code));
  return Status::ok();
}

} // namespace dg
