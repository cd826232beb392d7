// SPDX-License-Identifier: Apache-2.0
// Packages with entries, manifest or archive changed, and every hash and the seal made right again: without that, each
// change would end at the first hash.
#include "runtime/package/Manifest.h"
#include "runtime/package/Package.h"
#include "runtime/support/Sha256.h"
#include "tests/fuzz/JsonMutation.h"
#include "tests/fuzz/ZipFile.h"

using namespace dg::fuzz;
using namespace dg::package;

namespace {

constexpr size_t mostBytes = 1 << 15;

void mutateEntries(std::vector<ZipEntry> &entries, Random &random) {
  if (entries.empty() || random.oneIn(8))
    entries.push_back({entries.empty() ? "plan.json" : "entry" + std::to_string(random.below(4)), "content"});
  ZipEntry &entry = random.oneOf(entries);
  switch (random.below(5)) {
  case 0:
    mutateBytes(entry.name, entry.name.size() + 4);
    break;
  case 1:
    if (entries.size() > 1)
      std::swap(entry, entries.back());
    entries.pop_back();
    break;
  case 2:
    entry.isDeflated = !entry.isDeflated;
    break;
  default:
    mutateBytes(entry.content, std::min<size_t>(entry.content.size() + 64, mostBytes));
  }
}

/// The manifest that describes these entries, mostly.
Manifest describe(const std::vector<ZipEntry> &entries, size_t alignment) {
  Manifest manifest{packageVersion, "dg fuzz", {}};
  std::vector<size_t> offsets = writeZip(entries, alignment, "").offsets;
  for (size_t i = 0; i < entries.size(); ++i)
    manifest.entries.push_back(
        {entries[i].name, offsets[i], entries[i].content.size(), hexOf(sha256(entries[i].content))});
  return manifest;
}

std::optional<std::string> mutatePackage(std::string_view bytes, Random &random) {
  auto entries = readZip(bytes);
  if (!entries)
    return std::nullopt;
  std::erase_if(*entries, [](const ZipEntry &entry) { return entry.name == manifestName; });
  if (!random.oneIn(3))
    mutateEntries(*entries, random);
  // Small archives are tried more often in a second; the reader does not ask for the alignment.
  size_t alignment = random.oneIn(10) ? entryAlignment : 64;
  Manifest manifest = describe(*entries, alignment);
  if (random.oneIn(8) && manifest.entries.size() > 1)
    std::swap(random.oneOf(manifest.entries), random.oneOf(manifest.entries));
  std::string text = toJson(manifest);
  if (random.oneIn(3))
    text = mutateJson(std::move(text), random);
  entries->push_back({manifestName, text});
  std::string file = writeZip(*entries, alignment, std::string(commentBytes, '0')).bytes;
  if (random.oneIn(4)) {
    static constexpr const char *marks[] = {"PK\3\4", "PK\1\2", "PK\5\6"};
    size_t record = file.rfind(random.oneOf(marks));
    overwrite(file, record + 4 + random.below(46), random.oneIn(2) ? 2 : 4, uint64_t(strangeNumber(random)));
  }
  // Over what the reader will take for the manifest.
  dg::Result<Manifest> written = manifestFromJson(text, "fuzz");
  std::string seal = sealOf(std::as_bytes(std::span(file)), written ? *written : manifest);
  if (seal.size() == sealBytes)
    file.replace(file.size() - commentBytes, commentBytes, commentOf(seal, std::string(signatureBytes, '0')));
  return file;
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, mutatePackage);
}
