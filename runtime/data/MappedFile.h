// SPDX-License-Identifier: Apache-2.0
// A file mapped for reading.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dg::data {

/// The bytes of a file, unmapped with the last owner. Not for files that shrink while they are read.
class MappedFile {
public:
  /// Fails (badInput) if the file is missing, not a regular file, or cannot be read; an empty file maps to an empty
  /// span.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  std::span<const std::byte> bytes() const { return {start, size}; }

private:
  MappedFile(const std::byte *start, size_t size) : start(start), size(size) {}
  const std::byte *start;
  size_t size;
};

} // namespace dg::data
