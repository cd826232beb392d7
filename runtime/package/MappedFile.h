// SPDX-License-Identifier: Apache-2.0
// A file mapped for reading.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace dg::package {

/// Owns the mapping. The file must not be shortened while it is mapped; replacing it by rename is fine.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Fails with badInput if the path is missing, unreadable or no regular file. An empty file is an empty span.
  static Result<MappedFile> open(const std::string &path);

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(address), size}; }
  /// Lets the system take back the memory of these bytes of the file; who reads them again reads the file again. Any
  /// thread, at any time.
  void forget(std::span<const std::byte> part) const;
  const std::string &path() const { return name; }

private:
  void *address = nullptr;
  size_t size = 0;
  std::string name;
};

} // namespace dg::package
