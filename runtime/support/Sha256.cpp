// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Sha256.h"

#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

namespace dg {

/// libcrypto fails here only where it has no SHA-256 or no memory: no rank may go on unauthenticated.
static void require(bool isDone) {
  if (!isDone)
    std::abort();
}

Digest sha256(std::string_view bytes) {
  Digest digest;
  require(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

Digest hmacSha256(std::string_view key, std::string_view message) {
  Digest digest;
  require(HMAC(EVP_sha256(), key.data(), int(key.size()), reinterpret_cast<const unsigned char *>(message.data()),
               message.size(), digest.data(), nullptr) != nullptr);
  return digest;
}

bool isEqual(const Digest &left, const Digest &right) {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string hexOf(const Digest &digest) { return fmt::format("{:02x}", fmt::join(digest, "")); }

} // namespace dg
