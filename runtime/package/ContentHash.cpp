// SPDX-License-Identifier: Apache-2.0
#include "runtime/package/ContentHash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace dg::package {

std::string hashOf(std::span<const std::byte> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

} // namespace dg::package
