// SPDX-License-Identifier: Apache-2.0
// A file that has a path and no disk, for readers that open their file themselves.
#pragma once

#include "tests/fuzz/FuzzTarget.h"

#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace dg::fuzz {

class MemoryFile {
public:
  explicit MemoryFile(std::span<const std::byte> bytes) : file(memfd_create("fuzz", MFD_CLOEXEC)) {
    check(file >= 0 && write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size()), "a file in memory");
  }
  ~MemoryFile() { close(file); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }

private:
  int file;
};

} // namespace dg::fuzz
