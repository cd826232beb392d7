// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC, from libcrypto: all the cryptography that the rendezvous of a job needs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dg {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
/// The proof that someone who knows `key` wrote `message`.
Digest hmacSha256(std::string_view key, std::string_view message);
/// Compares in a time that does not depend on where the bytes differ.
bool isEqual(const Digest &left, const Digest &right);
inline std::string_view asText(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

} // namespace dg
