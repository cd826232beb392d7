// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/FileReading.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace dg {

using File = std::unique_ptr<FILE, int (*)(FILE *)>;

static Result<std::string> readAll(const File &file, const std::string &path, size_t mostBytes) {
  if (!file)
    return Status::error(ErrorKind::badInput, "{}: cannot be read: {}", path, std::strerror(errno));
  std::string text;
  constexpr size_t part = size_t(1) << 20;
  for (size_t count = part; count == part;) {
    const size_t before = text.size();
    text.resize(before + part);
    count = std::fread(text.data() + before, 1, part, file.get());
    text.resize(before + count);
    if (std::ferror(file.get()))
      return Status::error(ErrorKind::badInput, "{}: cannot be read: {}", path, std::strerror(errno));
    if (text.size() > mostBytes)
      return Status::error(ErrorKind::badInput, "{}: has more than {} bytes, the most that is read of such a file",
                           path, mostBytes);
  }
  return text;
}

Result<std::string> readText(const std::string &path, size_t mostBytes) {
  return readAll(File(std::fopen(path.c_str(), "rbe"), std::fclose), path, mostBytes);
}

Result<std::string> readOwnText(const std::string &path, size_t mostBytes) {
  // Not blocking: a pipe that somebody laid there would be waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat facts;
  if (descriptor >= 0 && (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() ||
                          (facts.st_mode & (S_IWGRP | S_IWOTH)))) {
    ::close(descriptor);
    return Status::error(ErrorKind::badInput, "{}: is no file of this user that only he can write: it is not read",
                         path);
  }
  return readAll(File(descriptor >= 0 ? ::fdopen(descriptor, "rb") : nullptr, std::fclose), path, mostBytes);
}

} // namespace dg
