// SPDX-License-Identifier: Apache-2.0
#include "runtime/package/ContentHash.h"

#include <fmt/format.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace dg::package {

struct ContentHash::State {
  XXH3_state_t xxh;
};

static std::string textOf(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

ContentHash::ContentHash() : state(std::make_unique<State>()) { XXH3_128bits_reset(&state->xxh); }
ContentHash::ContentHash(ContentHash &&) noexcept = default;
ContentHash &ContentHash::operator=(ContentHash &&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state->xxh, bytes.data(), bytes.size());
}

std::string ContentHash::text() const { return textOf(XXH3_128bits_digest(&state->xxh)); }

std::string hashOf(std::span<const std::byte> bytes) { return textOf(XXH3_128bits(bytes.data(), bytes.size())); }

} // namespace dg::package
