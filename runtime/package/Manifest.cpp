// SPDX-License-Identifier: Apache-2.0
// The manifest as JSON, and the seal.
#include "runtime/package/Manifest.h"

#include "runtime/package/Package.h"
#include "runtime/support/Json.h"
#include "runtime/support/Sha256.h"

namespace dg::package {

using Json = nlohmann::ordered_json;

std::string sealOf(std::span<const std::byte> all, const Manifest &manifest) {
  if (all.size() < commentBytes)
    return "";
  std::string covered = toJson(manifest);
  uint64_t at = 0, end = all.size() - commentBytes;
  auto append = [&](uint64_t from, uint64_t to) {
    covered.append(reinterpret_cast<const char *>(all.data()) + from, to - from);
  };
  for (const ManifestEntry &entry : manifest.entries) {
    if (entry.offset < at || entry.offset > end || entry.size > end - entry.offset)
      return "";
    append(at, entry.offset);
    at = entry.offset + entry.size;
  }
  append(at, end);
  return hexOf(sha256(covered));
}

std::string commentOf(const std::string &seal, const std::string &signature) {
  const std::string both = seal + signature;
  return both + hexOf(sha256(both)).substr(0, checkBytes);
}

std::string toJson(const Manifest &manifest) {
  Json entries = Json::object();
  for (const ManifestEntry &entry : manifest.entries)
    entries[entry.name] = {{"offset", entry.offset}, {"size", entry.size}, {"sha256", entry.hash}};
  Json document = {{"version", manifest.version}, {"tool", manifest.tool}, {"entries", std::move(entries)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Manifest> manifestFromJson(std::string_view text, const std::string &path) {
  auto damaged = [&](std::string_view what) {
    return Status::error(ErrorKind::badInput, "{}: {}: {}; compile it again with dgc", path, manifestName, what);
  };
  auto read = parseJson<Json>(text, manifestName);
  if (!read)
    return Status::error(ErrorKind::badInput, "{}: {}; compile it again with dgc", path, read.status().message());
  Json &document = *read;
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return damaged("not a manifest of a DG package");
  Manifest manifest;
  manifest.version = document["version"].get<int64_t>();
  if (manifest.version != packageVersion)
    return Status::error(ErrorKind::badInput,
                         "{}: package version {}, this build reads version {}; compile it again with its dgc", path,
                         manifest.version, packageVersion);
  if (!document.contains("tool") || !document["tool"].is_string())
    return damaged("the tool version is missing");
  manifest.tool = document["tool"].get<std::string>();
  if (!document.contains("entries") || !document["entries"].is_object())
    return damaged("the list of entries is missing");
  for (const auto &item : document["entries"].items()) {
    const Json &entry = item.value();
    if (!entry.is_object() || !entry.contains("offset") || !entry["offset"].is_number_unsigned() ||
        !entry.contains("size") || !entry["size"].is_number_unsigned() || !entry.contains("sha256") ||
        !entry["sha256"].is_string())
      return damaged(fmt::format("entry '{}' lacks offset, size or sha256", item.key()));
    manifest.entries.push_back({item.key(), entry["offset"].get<uint64_t>(), entry["size"].get<uint64_t>(),
                                entry["sha256"].get<std::string>()});
  }
  return manifest;
}

} // namespace dg::package
