// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC, from libcrypto: what the rendezvous of a job and the hashes of a package need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dg {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
inline Digest sha256(std::span<const std::byte> bytes) {
  return sha256(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}
/// 64 hexadecimal digits.
std::string hexOf(const Digest &digest);
/// The proof that someone who knows `key` wrote `message`.
Digest hmacSha256(std::string_view key, std::string_view message);
/// Compares in a time that does not depend on where the bytes differ.
bool isEqual(const Digest &left, const Digest &right);
inline std::string_view asText(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

} // namespace dg
