// SPDX-License-Identifier: Apache-2.0
#include "runtime/package/Signature.h"

#include "runtime/support/FileReading.h"

#include <fmt/ranges.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace dg::package {

static constexpr size_t signatureSize = 64;
using Signature = std::array<unsigned char, signatureSize>;

void KeyDeleter::operator()(evp_pkey_st *key) const { EVP_PKEY_free(key); }

namespace {

struct OpenSslDeleter {
  void operator()(BIO *text) const { BIO_free(text); }
  void operator()(EVP_MD_CTX *context) const { EVP_MD_CTX_free(context); }
};
template <typename T> using Owned = std::unique_ptr<T, OpenSslDeleter>;

constexpr size_t mostKeyBytes = 1 << 20;

/// What is signed says what it is of: a signature of something else that has these digits is none.
std::string messageOf(const std::string &seal) { return "DG package seal\n" + seal; }

/// Nobody is asked for a passphrase in the middle of a compilation.
int noPassphrase(char *, int, int, void *) { return -1; }

Result<std::string> readKeyFile(const std::string &path) {
  auto text = readText(path, mostKeyBytes);
  ERR_clear_error();
  return text;
}

Owned<BIO> bufferOf(const std::string &text) { return Owned<BIO>(BIO_new_mem_buf(text.data(), int(text.size()))); }

} // namespace

Result<SigningKey> SigningKey::read(const std::string &path) {
  auto text = readKeyFile(path);
  if (!text)
    return text.status();
  SigningKey signing;
  signing.key.reset(PEM_read_bio_PrivateKey(bufferOf(*text).get(), nullptr, noPassphrase, nullptr));
  if (!signing.key || EVP_PKEY_id(signing.key.get()) != EVP_PKEY_ED25519)
    return Status::error(ErrorKind::badInput,
                         "--sign {}: {}, expected an Ed25519 private key in PEM without a passphrase; make one with "
                         "'openssl genpkey -algorithm ed25519 -out key.pem'",
                         path, signing.key ? "a key of another kind" : "no private key that can be read");
  return signing;
}

std::string SigningKey::sign(const std::string &seal) const {
  Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const std::string message = messageOf(seal);
  Signature signature{};
  size_t length = signature.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &length, reinterpret_cast<const unsigned char *>(message.data()),
                     message.size()) != 1 ||
      length != signature.size())
    return "";
  return fmt::format("{:02x}", fmt::join(signature, ""));
}

Result<TrustedKeys> TrustedKeys::read(const std::string &path) {
  auto text = readKeyFile(path);
  if (!text)
    return text.status();
  TrustedKeys trusted;
  trusted.name = path;
  Owned<BIO> buffer = bufferOf(*text);
  while (Key key{PEM_read_bio_PUBKEY(buffer.get(), nullptr, noPassphrase, nullptr)}) {
    if (EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519)
      return Status::error(ErrorKind::badInput,
                           "--require-signature {}: holds a key of another kind, expected Ed25519 public keys in PEM",
                           path);
    trusted.keys.push_back(std::move(key));
  }
  ERR_clear_error(); // of the end of the file
  // A key that cannot be read ends the loop too, and must not be passed over.
  constexpr std::string_view begin = "-----BEGIN ";
  size_t numBegun = 0;
  for (size_t at = text->find(begin); at != std::string::npos; at = text->find(begin, at + 1))
    ++numBegun;
  if (trusted.keys.empty() || trusted.keys.size() != numBegun)
    return Status::error(ErrorKind::badInput,
                         "--require-signature {}: {}, expected Ed25519 public keys in PEM; 'openssl pkey -in key.pem "
                         "-pubout' prints the one of a private key",
                         path, trusted.keys.empty() ? "no public key that can be read" : "a key in it is damaged");
  return trusted;
}

static bool fromHex(std::string_view digits, Signature &bytes) {
  if (digits.size() != 2 * bytes.size())
    return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    for (char digit : digits.substr(2 * i, 2)) {
      const auto nibble = std::string_view("0123456789abcdef").find(digit);
      if (nibble == std::string_view::npos)
        return false;
      value = value * 16 + unsigned(nibble);
    }
    bytes[i] = static_cast<unsigned char>(value);
  }
  return true;
}

bool TrustedKeys::haveSigned(const std::string &seal, const std::string &signature) const {
  Signature bytes{};
  if (!fromHex(signature, bytes))
    return false;
  const std::string message = messageOf(seal);
  for (const Key &key : keys) {
    Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
    if (context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestVerify(context.get(), bytes.data(), bytes.size(),
                         reinterpret_cast<const unsigned char *>(message.data()), message.size()) == 1)
      return true;
    ERR_clear_error();
  }
  return false;
}

} // namespace dg::package
