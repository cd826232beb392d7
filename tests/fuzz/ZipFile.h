// SPDX-License-Identifier: Apache-2.0
// Small zip archives taken apart and put together again with right sizes and checksums, for the mutators of .npz files
// and packages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dg::fuzz {

struct ZipEntry {
  std::string name, content;
  bool isDeflated = false;
};

/// Nothing where the archive is not whole.
std::optional<std::vector<ZipEntry>> readZip(std::string_view bytes);

/// The archive, and where each entry's bytes begin. `alignment` above 1 pads with an extra field, as packages do.
struct ZipText {
  std::string bytes;
  std::vector<size_t> offsets;
};
ZipText writeZip(const std::vector<ZipEntry> &entries, size_t alignment, std::string_view comment);

/// A whole zlib, gzip or raw deflate stream, by the sign and size of its window; nothing where it is damaged or gives
/// more than `most` bytes.
std::optional<std::string> inflateText(std::string_view bytes, int windowBits, size_t most);
std::string deflateText(std::string_view bytes, int windowBits);

inline constexpr int rawDeflate = -15, gzipFormat = 31;

} // namespace dg::fuzz
