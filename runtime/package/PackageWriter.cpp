// SPDX-License-Identifier: Apache-2.0
// Writing. Each entry gets an extra field as long as it takes to put its bytes on a page; the offsets are computed here
// and proved by reading the archive back before it gets its name.
#include "runtime/package/Manifest.h"
#include "runtime/package/Package.h"
#include "runtime/support/FileWriting.h"
#include "runtime/support/Sha256.h"

#include <zip.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <unistd.h>

namespace dg::package {

namespace {

/// The padding's id is the one that Android's zipalign uses; readers skip what they do not know.
constexpr uint16_t paddingField = 0xD935;
constexpr uint64_t fieldHeaderBytes = 4, localHeaderBytes = 30, zip64FieldBytes = 20;
constexpr uint64_t zip64Threshold = UINT32_MAX;

Status checkNames(const std::vector<PackageEntry> &entries) {
  std::set<std::string> seen;
  for (const PackageEntry &entry : entries) {
    bool plain = !entry.name.empty() && entry.name.size() < 256 && entry.name != manifestName &&
                 entry.name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
    if (!plain || !seen.insert(entry.name).second)
      return Status::error(ErrorKind::usage, "package entry '{}': the name is empty, double, reserved or a path",
                           entry.name);
  }
  return Status::ok();
}

/// Where things go in the file, as libzip will write them.
struct Placement {
  uint64_t padding = 0; ///< bytes of the extra field's payload
  uint64_t offset = 0;  ///< of the entry's data
  uint64_t end = 0;
};

Placement place(uint64_t start, const std::string &name, uint64_t size) {
  Placement placement;
  uint64_t unpadded =
      start + localHeaderBytes + name.size() + fieldHeaderBytes + (size > zip64Threshold ? zip64FieldBytes : 0);
  placement.offset = (unpadded + entryAlignment - 1) / entryAlignment * entryAlignment;
  placement.padding = placement.offset - unpadded;
  placement.end = placement.offset + size;
  return placement;
}

Status addEntry(zip_t *archive, const PackageEntry &entry, const Placement &placement) {
  zip_source_t *source = zip_source_buffer(archive, entry.bytes.data(), entry.bytes.size(), 0);
  zip_int64_t index = source ? zip_file_add(archive, entry.name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
  std::string zeros(placement.padding, '\0');
  // One date for all, so that the same entries give the same archive: 1980-01-01, where zip's time begins.
  if (index < 0 || zip_set_file_compression(archive, zip_uint64_t(index), ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, zip_uint64_t(index), 0, (1 << 5) | 1, 0) != 0 ||
      zip_file_extra_field_set(archive, zip_uint64_t(index), paddingField, ZIP_EXTRA_FIELD_NEW,
                               reinterpret_cast<const zip_uint8_t *>(zeros.data()), zip_uint16_t(zeros.size()),
                               ZIP_FL_LOCAL) != 0) {
    if (index < 0 && source)
      zip_source_free(source);
    return Status::error(ErrorKind::runFailed, "package entry '{}': {}", entry.name, zip_strerror(archive));
  }
  return Status::ok();
}

/// Replaces the placeholder at the end of the file by the seal and its signature.
Status sealArchive(const std::string &path, const Manifest &manifest, const SigningKey *key) {
  Result<MappedFile> written = MappedFile::open(path);
  if (!written)
    return written.status();
  const std::string seal = sealOf(written->bytes(), manifest);
  const std::string comment = commentOf(seal, key ? key->sign(seal) : std::string(signatureBytes, '0'));
  int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  int cause = descriptor < 0 ? errno
              : comment.size() != commentBytes
                  ? EIO
                  : writeAllAt(descriptor, comment.data(), commentBytes, written->bytes().size() - commentBytes);
  if (cause == 0 && fsync(descriptor) != 0)
    cause = errno;
  if (descriptor >= 0)
    close(descriptor);
  return cause == 0 ? Status::ok()
                    : Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, std::strerror(cause));
}

Status writeArchive(const std::string &path, const std::vector<PackageEntry> &entries, const SigningKey *key) {
  int error = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (!archive) {
    zip_error_t cause;
    zip_error_init_with_code(&cause, error);
    Status failure = Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, zip_error_strerror(&cause));
    zip_error_fini(&cause);
    return failure;
  }
  Manifest manifest;
  manifest.version = packageVersion;
  manifest.tool = "dg " DG_VERSION;
  uint64_t start = 0;
  Status status = Status::ok();
  for (const PackageEntry &entry : entries) {
    Placement placement = place(start, entry.name, entry.bytes.size());
    manifest.entries.push_back({entry.name, placement.offset, entry.bytes.size(), hexOf(sha256(entry.bytes))});
    start = placement.end;
    if (status)
      status = addEntry(archive, entry, placement);
  }
  std::string manifestText = toJson(manifest);
  if (status)
    status = addEntry(archive, PackageEntry::ofText(manifestName, manifestText),
                      place(start, manifestName, manifestText.size()));
  std::string placeholder(commentBytes, '0');
  if (status && zip_set_archive_comment(archive, placeholder.data(), zip_uint16_t(commentBytes)) != 0)
    status = Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, zip_strerror(archive));
  if (status && zip_close(archive) == 0)
    return sealArchive(path, manifest, key);
  if (status)
    status = Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, zip_strerror(archive));
  zip_discard(archive);
  return status;
}

Status writeAndProve(const std::string &partial, const std::vector<PackageEntry> &entries, const SigningKey *key) {
  DG_RETURN_IF_ERROR(writeArchive(partial, entries, key));
  return Package::open(partial).status();
}

} // namespace

Status writePackage(const std::string &path, const std::vector<PackageEntry> &entries, const SigningKey *key) {
  DG_RETURN_IF_ERROR(checkNames(entries));
  const std::string target = followLinks(path), partial = makePartialName(target);
  Status status = writeAndProve(partial, entries, key);
  if (status && std::rename(partial.c_str(), target.c_str()) != 0)
    status =
        Status::error(ErrorKind::unwritten, "{}: cannot be renamed to {}: {}", partial, target, std::strerror(errno));
  if (!status) {
    unlink(partial.c_str());
    return status;
  }
  if (int code = syncFolder(std::filesystem::path(target).parent_path().string()); code != 0)
    return Status::error(ErrorKind::unwritten, "{}: written, but its folder cannot be synchronised: {}", path,
                         std::strerror(code));
  return Status::ok();
}

} // namespace dg::package
