// SPDX-License-Identifier: Apache-2.0
// manifest.json, the last entry of a package: format version, tool version, and for each other entry its offset in the
// file, size and xxh3-128. Private to this folder.
#pragma once

#include "runtime/package/ContentHash.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dg::package {

inline constexpr const char *manifestName = "manifest.json";

struct ManifestEntry {
  std::string name;
  uint64_t offset = 0, size = 0;
  std::string hash; ///< 32 hexadecimal digits
};

struct Manifest {
  int64_t version = 0;
  std::string tool;
  std::vector<ManifestEntry> entries;
};

/// The archive's comment is the hash of what no entry's hash covers.
inline constexpr size_t sealBytes = 32;
/// xxh3-128 of a package's bytes that belong to no entry (headers, padding, manifest, directory), the seal itself left
/// out. The entries must lie inside `all`, one behind the other; an empty string if they do not.
std::string sealOf(std::span<const std::byte> all, const Manifest &manifest);
std::string toJson(const Manifest &manifest);
/// Fails with badInput on anything that toJson did not write; `path` is for the message.
Result<Manifest> manifestFromJson(std::string_view text, const std::string &path);

} // namespace dg::package
