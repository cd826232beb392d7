// SPDX-License-Identifier: Apache-2.0
// The package, JOB.dgx: a zip archive of stored entries aligned to pages, with a manifest that holds the place, size
// and hash of each. A reader maps the file; entries are spans of the mapping. Everything is checked before anything is
// used.
#pragma once

#include "runtime/package/MappedFile.h"
#include "runtime/package/Signature.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dg::package {

inline constexpr int64_t packageVersion = 2;
/// Entries start at multiples of this, so that objects and tensors can be used in place.
inline constexpr size_t entryAlignment = 4096;

/// One file to be packed. The bytes are borrowed until writePackage returns.
struct PackageEntry {
  std::string name; ///< "plan.json", "train.x86-64-v3.so", "init.safetensors"
  std::span<const std::byte> bytes;

  static PackageEntry ofText(std::string name, std::string_view text) {
    return {std::move(name), std::as_bytes(std::span(text.data(), text.size()))};
  }
};

/// Writes "<path>.<random>.partial", reads it back with every check, then renames it: a failure leaves neither a
/// half-written package nor a changed old one. Fails with usage on a name that is empty, double, or reserved, and with
/// runFailed when the disk does. The same entries give the same bytes.
/// `key` signs it.
Status writePackage(const std::string &path, const std::vector<PackageEntry> &entries, const SigningKey *key = nullptr);

/// An open package. Spans live as long as it does. Any thread may read.
class Package {
public:
  /// Checks the whole file: archive, manifest, version, size and hash of every entry, and that there is a plan. Fails
  /// with badInput and a message that names the file, the entry and what to do.
  static Result<Package> open(const std::string &path);
  /// The same from memory, which is borrowed as long as the package lives; `path` is for messages.
  static Result<Package> read(const std::string &path, std::span<const std::byte> all);

  /// The bytes of one entry; badInput if there is none of that name.
  Result<std::span<const std::byte>> entry(std::string_view name) const;
  /// The same as text.
  Result<std::string_view> text(std::string_view name) const;
  bool has(std::string_view name) const;
  /// Bytes of an entry that nobody else can change any more, checked again: of code. A mapped file may be another's.
  Result<std::vector<std::byte>> copyOf(std::string_view name) const;
  /// Lets the system take back the memory of bytes of an entry, which stay readable: a large tensor that was copied
  /// would otherwise count twice.
  void forget(std::span<const std::byte> part) const { file.forget(part); }
  /// Names in the order in which they were written, without the manifest.
  std::vector<std::string> entries() const;
  /// The version of the dgc that wrote it.
  const std::string &toolVersion() const { return writtenBy; }
  const std::string &path() const { return name; }
  /// Equal for packages of equal contents, signed or not: it covers the manifest, which has the hash of every entry.
  const std::string &identity() const { return seal; }
  /// Whether one of the keys signed it. Fails with badInput if none did.
  Status checkSignature(const TrustedKeys &keys) const;

private:
  struct Item {
    std::string name;
    std::span<const std::byte> bytes;
    std::string hash;
  };
  MappedFile file;
  std::string name, seal, signature;
  std::vector<Item> items;
  std::string writtenBy;
};

} // namespace dg::package
