// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/FileReading.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace dg {

Result<std::string> readText(const std::string &path, size_t mostBytes) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
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

} // namespace dg
