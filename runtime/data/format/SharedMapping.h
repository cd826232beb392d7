// SPDX-License-Identifier: Apache-2.0
// A mapped file that many tensors may own together.
#pragma once

#include "runtime/package/MappedFile.h"

#include <memory>

namespace dg::data {

/// Maps the file for reading; fails as MappedFile::open does.
inline Result<std::shared_ptr<const package::MappedFile>> mapShared(const std::string &path) {
  auto file = package::MappedFile::open(path);
  if (!file)
    return file.status();
  return std::shared_ptr<const package::MappedFile>(std::make_shared<package::MappedFile>(std::move(*file)));
}

} // namespace dg::data
