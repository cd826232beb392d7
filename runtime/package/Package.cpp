// SPDX-License-Identifier: Apache-2.0
// Reading. libzip checks the archive and reads the manifest; the entries themselves are spans of the mapping at the
// offsets that the manifest names, and the hash proves that they are what was written.
#include "runtime/package/Package.h"
#include "runtime/package/Manifest.h"
#include "runtime/support/Printable.h"
#include "runtime/support/Sha256.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace dg::package {

namespace {

struct ZipDeleter {
  void operator()(zip_t *archive) const { zip_discard(archive); }
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipDeleter>;
using ArchiveFile = std::unique_ptr<zip_file_t, ZipDeleter>;

constexpr uint64_t maxManifestBytes = 1u << 20;

Result<Archive> openArchive(std::span<const std::byte> bytes, const std::string &path) {
  if (bytes.empty())
    return Status::error(ErrorKind::badInput, "{}: empty, expected a DG package; compile it again with dgc", path);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : nullptr;
  if (!archive) {
    bool looksZipped = bytes.size() >= 4 && bytes[0] == std::byte('P') && bytes[1] == std::byte('K');
    Status failure = Status::error(
        ErrorKind::badInput, "{}: {} ({}, {} bytes); {}", path,
        looksZipped ? "a truncated or altered package" : "not a DG package", zip_error_strerror(&error), bytes.size(),
        looksZipped ? "copy it again, or compile it again with dgc" : "give a file that dgc wrote");
    if (source)
      zip_source_free(source);
    zip_error_fini(&error);
    return failure;
  }
  zip_error_fini(&error);
  return Archive(archive);
}

Result<Manifest> readManifest(zip_t *archive, const std::string &path) {
  zip_stat_t stat;
  if (zip_stat(archive, manifestName, 0, &stat) != 0)
    return Status::error(ErrorKind::badInput,
                         "{}: a zip archive without {}, so not a DG package; give a file that dgc wrote", path,
                         manifestName);
  if (!(stat.valid & ZIP_STAT_SIZE) || stat.size > maxManifestBytes)
    return Status::error(ErrorKind::badInput, "{}: {} is larger than {} bytes; compile it again with dgc", path,
                         manifestName, maxManifestBytes);
  std::string text(stat.size, '\0');
  ArchiveFile entry(zip_fopen_index(archive, stat.index, 0));
  // One byte more than there is, so that libzip reaches the end and compares the checksum.
  char beyond;
  if (!entry || zip_fread(entry.get(), text.data(), text.size()) != zip_int64_t(text.size()) ||
      zip_fread(entry.get(), &beyond, 1) != 0)
    return Status::error(ErrorKind::badInput, "{}: {} is damaged; compile it again with dgc", path, manifestName);
  return manifestFromJson(text, path);
}

/// The archive's directory and the manifest must name the same entries with the same sizes.
Status compareDirectory(zip_t *archive, const Manifest &manifest, const std::string &path) {
  for (const ManifestEntry &entry : manifest.entries) {
    zip_stat_t stat;
    if (zip_stat(archive, entry.name.c_str(), 0, &stat) != 0)
      return Status::error(ErrorKind::badInput, "{}: entry '{}' is missing; compile it again with dgc", path,
                           entry.name);
    if (stat.size != entry.size || stat.comp_size != entry.size || stat.comp_method != ZIP_CM_STORE)
      return Status::error(
          ErrorKind::badInput,
          "{}: entry '{}' has {} bytes ({} stored), expected {} stored as they are; compile it again with dgc", path,
          entry.name, stat.size, stat.comp_size, entry.size);
  }
  zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count != zip_int64_t(manifest.entries.size()) + 1)
    return Status::error(ErrorKind::badInput, "{}: {} entries, the manifest lists {}; compile it again with dgc", path,
                         count - 1, manifest.entries.size());
  return Status::ok();
}

/// No byte of the file may differ from what was written, alignment included. Returns the comment: seal and signature.
Result<std::string> checkSeal(zip_t *archive, std::span<const std::byte> all, const Manifest &manifest,
                              const std::string &path) {
  int length = 0;
  const char *comment = zip_get_archive_comment(archive, &length, ZIP_FL_ENC_RAW);
  std::string written = comment ? std::string(comment, size_t(length)) : "", found = sealOf(all, manifest);
  // The last bytes of the file, where libzip could see a comment elsewhere.
  const bool isLast = written.size() == commentBytes && all.size() >= commentBytes &&
                      std::memcmp(all.data() + all.size() - commentBytes, written.data(), commentBytes) == 0;
  if (isLast && !found.empty() && written == commentOf(found, written.substr(sealBytes, signatureBytes)))
    return written;
  return Status::error(ErrorKind::badInput,
                       "{}: altered outside of its entries: SHA-256 is '{}', its comment says '{}'; compile it again "
                       "with dgc",
                       path, found, printable(written.substr(0, sealBytes)));
}

} // namespace

Result<Package> Package::open(const std::string &path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.status();
  Result<Package> package = read(path, mapped->bytes());
  if (package)
    package->file = std::move(*mapped);
  return package;
}

Result<Package> Package::read(const std::string &path, std::span<const std::byte> all) {
  Result<Archive> archive = openArchive(all, path);
  if (!archive)
    return archive.status();
  Result<Manifest> manifest = readManifest(archive->get(), path);
  if (!manifest)
    return manifest.status();
  DG_RETURN_IF_ERROR(compareDirectory(archive->get(), *manifest, path));

  Package package;
  for (const ManifestEntry &entry : manifest->entries) {
    if (entry.offset > all.size() || entry.size > all.size() - entry.offset)
      return Status::error(ErrorKind::badInput, "{}: entry '{}' ends behind the file; compile it again with dgc", path,
                           entry.name);
    std::span<const std::byte> bytes = all.subspan(entry.offset, entry.size);
    if (std::string found = hexOf(sha256(bytes)); found != entry.hash)
      return Status::error(ErrorKind::badInput,
                           "{}: entry '{}' was altered: SHA-256 is {}, the manifest says {}; compile it again with dgc",
                           path, entry.name, found, entry.hash);
    package.items.push_back({entry.name, bytes, entry.hash});
  }
  Result<std::string> comment = checkSeal(archive->get(), all, *manifest, path);
  if (!comment)
    return comment.status();
  if (!package.has("plan.json"))
    return Status::error(ErrorKind::badInput, "{}: a package without plan.json; compile it again with dgc", path);
  package.writtenBy = manifest->tool;
  package.seal = comment->substr(0, sealBytes);
  package.signature = comment->substr(sealBytes, signatureBytes);
  package.name = path;
  return package;
}

Result<std::span<const std::byte>> Package::entry(std::string_view name) const {
  for (const Item &item : items)
    if (item.name == name)
      return item.bytes;
  return Status::error(ErrorKind::badInput, "{}: there is no entry '{}'; compile it again with dgc", path(), name);
}

Result<std::vector<std::byte>> Package::copyOf(std::string_view name) const {
  for (const Item &item : items)
    if (item.name == name) {
      std::vector<std::byte> copy(item.bytes.begin(), item.bytes.end());
      if (hexOf(sha256(copy)) == item.hash)
        return copy;
      return Status::error(ErrorKind::badInput, "{}: entry '{}' was altered after it was opened; compile it again",
                           path(), name);
    }
  return entry(name).status();
}

Status Package::checkSignature(const TrustedKeys &keys) const {
  if (signature == std::string(signatureBytes, '0'))
    return Status::error(ErrorKind::badInput,
                         "{}: is not signed, and --require-signature asks for a signature by a "
                         "key of {}; compile it with --sign KEY",
                         path(), keys.path());
  if (keys.haveSigned(seal, signature))
    return Status::ok();
  return Status::error(ErrorKind::badInput,
                       "{}: its signature is not of a key of {}; ask its maker which key it was signed with", path(),
                       keys.path());
}

Result<std::string_view> Package::text(std::string_view name) const {
  Result<std::span<const std::byte>> bytes = entry(name);
  if (!bytes)
    return bytes.status();
  return std::string_view(reinterpret_cast<const char *>(bytes->data()), bytes->size());
}

bool Package::has(std::string_view name) const {
  return std::any_of(items.begin(), items.end(), [&](const Item &item) { return item.name == name; });
}

std::vector<std::string> Package::entries() const {
  std::vector<std::string> names;
  for (const Item &item : items)
    names.push_back(item.name);
  return names;
}

} // namespace dg::package
