// SPDX-License-Identifier: Apache-2.0
// Who made a package: Ed25519 signatures of its seal. Keys are PEM files, as openssl writes them.
#pragma once

#include "runtime/support/Status.h"

#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;

namespace dg::package {

struct KeyDeleter {
  void operator()(evp_pkey_st *key) const;
};
using Key = std::unique_ptr<evp_pkey_st, KeyDeleter>;

/// The private key of who makes packages.
class SigningKey {
public:
  /// Fails with badInput on anything but one Ed25519 private key without a passphrase.
  static Result<SigningKey> read(const std::string &path);
  /// Of a package's seal, as hexadecimal digits; "" if libcrypto fails.
  std::string sign(const std::string &seal) const;

private:
  Key key;
};

/// The public keys of those whose packages may run.
class TrustedKeys {
public:
  /// Fails with badInput on a file that is not one Ed25519 public key behind the other.
  static Result<TrustedKeys> read(const std::string &path);
  bool haveSigned(const std::string &seal, const std::string &signature) const;
  const std::string &path() const { return name; }

private:
  std::string name;
  std::vector<Key> keys;
};

} // namespace dg::package
