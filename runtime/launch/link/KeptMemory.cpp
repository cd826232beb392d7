// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/KeptMemory.h"

#include "runtime/support/SystemMemory.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace dg {

static constexpr size_t pageBytes = 4096;

static size_t wholePages(uint64_t bytes) { return (size_t(bytes) + pageBytes - 1) / pageBytes * pageBytes; }

Result<std::unique_ptr<KeptMemory>> KeptMemory::make(const std::vector<uint64_t> &regionBytes) {
  size_t bytes = pageBytes;
  for (uint64_t region : regionBytes)
    bytes += 2 * wholePages(region);
  auto refuse = [&](const std::string &why) {
    return Status::error(ErrorKind::usage,
                         "--snapshot-every: two snapshots of the {} ranks here need {} bytes of memory: {}; spread the "
                         "ranks over more hosts, or leave it out and give --checkpoint-every",
                         regionBytes.size(), bytes, why);
  };
  if (auto available = availableMemoryBytes(); available && *available < bytes)
    return refuse(fmt::format("{} are available", *available));
  const int file = ::memfd_create("dgrun snapshots", MFD_CLOEXEC);
  if (file < 0)
    return refuse(std::strerror(errno));
  // A limit on the size of files holds for memory without a name too.
  struct sigaction ignored = {}, before = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignored, &before);
  const int code = ::posix_fallocate(file, 0, off_t(bytes));
  ::sigaction(SIGXFSZ, &before, nullptr);
  void *memory = code == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = code != 0 ? code : errno;
  ::close(file);
  if (memory == MAP_FAILED)
    return refuse(std::strerror(error));
  std::unique_ptr<KeptMemory> kept(new KeptMemory(memory, bytes));
  new (memory) ReportMark{};
  auto *next = static_cast<std::byte *>(memory) + pageBytes;
  for (uint64_t region : regionBytes) {
    Regions &both = kept->parts.emplace_back();
    for (std::span<std::byte> &one : both) {
      one = {next, size_t(region)};
      next += wholePages(region);
    }
  }
  return kept;
}

KeptMemory::~KeptMemory() { ::munmap(memory, bytes); }

} // namespace dg
