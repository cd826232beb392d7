// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dg::data {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Status::error(ErrorKind::badInput, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat info;
  Status status = Status::ok();
  void *start = nullptr;
  if (fstat(file, &info) != 0)
    status = Status::error(ErrorKind::badInput, "{}: {}", path, std::strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = Status::error(ErrorKind::badInput, "{}: expected a regular file", path);
  else if (info.st_size > 0) {
    start = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED)
      status = Status::error(ErrorKind::badInput, "{}: cannot be mapped: {}", path, std::strerror(errno));
  }
  ::close(file);
  if (!status)
    return status;
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte *>(start), start ? size_t(info.st_size) : 0));
}

MappedFile::~MappedFile() {
  if (start)
    munmap(const_cast<std::byte *>(start), size);
}

} // namespace dg::data
