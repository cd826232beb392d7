// SPDX-License-Identifier: Apache-2.0
// open, fstat, mmap; the descriptor is closed at once, the mapping keeps the file.
#include "runtime/package/MappedFile.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dg::package {

MappedFile::MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(address, other.address);
  std::swap(size, other.size);
  std::swap(name, other.name);
  return *this;
}

MappedFile::~MappedFile() {
  if (address)
    munmap(address, size);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Status::error(ErrorKind::badInput, "{}: cannot be opened: {}; check the path", path, std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return Status::error(ErrorKind::badInput, "{}: not a regular file but a folder or device; check the path", path);
  }
  MappedFile file;
  file.name = path;
  if (status.st_size > 0) {
    void *address = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      int cause = errno;
      close(descriptor);
      return Status::error(ErrorKind::badInput, "{}: cannot be mapped: {}", path, std::strerror(cause));
    }
    file.address = address;
    file.size = size_t(status.st_size);
  }
  close(descriptor);
  return file;
}

void MappedFile::forget(std::span<const std::byte> part) const {
  auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size(),
       own = reinterpret_cast<uintptr_t>(address);
  if (part.empty() || begin < own || end > own + size)
    return;
  const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  // Advice only: the mapping is never written, so nothing is lost, and a refusal costs memory.
  (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

} // namespace dg::package
