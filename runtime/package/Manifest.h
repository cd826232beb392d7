// SPDX-License-Identifier: Apache-2.0
// manifest.json, the last entry of a package: format version, tool version, and for each other entry its offset in the
// file, size and SHA-256. Private to this folder.
#pragma once

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
  std::string hash; ///< SHA-256, 64 hexadecimal digits
};

struct Manifest {
  int64_t version = 0;
  std::string tool;
  std::vector<ManifestEntry> entries;
};

/// The archive's comment, the last bytes of the file, in hexadecimal digits: the seal, the signature of the seal or as
/// many '0', and the first digits of the SHA-256 of both.
inline constexpr size_t sealBytes = 64, signatureBytes = 128, checkBytes = 16;
inline constexpr size_t commentBytes = sealBytes + signatureBytes + checkBytes;
std::string commentOf(const std::string &seal, const std::string &signature);
/// SHA-256 over the manifest and a package's bytes that belong to no entry (headers, padding, directory), the comment
/// left out: with the hashes of the manifest it covers every byte of the file. The entries must lie inside `all`, one
/// behind the other; an empty string if they do not.
std::string sealOf(std::span<const std::byte> all, const Manifest &manifest);
std::string toJson(const Manifest &manifest);
/// Fails with badInput on anything that toJson did not write; `path` is for the message.
Result<Manifest> manifestFromJson(std::string_view text, const std::string &path);

} // namespace dg::package
