// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/ObjectCache.h"

#include "runtime/support/CacheFolder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <elf.h>
#include <link.h>

namespace dg::codegen {

static constexpr size_t digestBytes = 32;

static std::string digestOf(llvm::StringRef bytes) {
  std::array<uint8_t, digestBytes> digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  return std::string(digest.begin(), digest.end());
}

/// Adds the build id of one loaded object; that of the program comes first.
static int addBuildId(dl_phdr_info *object, size_t, void *to) {
  std::string &ids = *static_cast<std::string *>(to);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *at = reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr), *end = at + segment.p_memsz;
    while (end - at >= ptrdiff_t(sizeof(ElfW(Nhdr)))) {
      const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
      const char *name = at + sizeof(*note), *id = name + llvm::alignTo<4>(note->n_namesz);
      if (note->n_type == NT_GNU_BUILD_ID && llvm::StringRef(name, note->n_namesz) == llvm::StringRef("GNU\0", 4))
        ids += llvm::toHex(llvm::StringRef(id, note->n_descsz)) + ",";
      at = id + llvm::alignTo<4>(note->n_descsz);
    }
  }
  ids += ";";
  return 0;
}

Result<ObjectCache> ObjectCache::open(std::string folder) {
  std::string compiler;
  dl_iterate_phdr(addBuildId, &compiler);
  if (compiler.front() == ';')
    return Status::error(ErrorKind::usage, "this dgc was linked without a build id, by which cached code is known");
  DG_RETURN_IF_ERROR(makePrivateFolder(folder, "the code of jobs"));
  return ObjectCache(std::move(folder), std::move(compiler));
}

std::string ObjectCache::keyOf(llvm::StringRef kernel, const Target &target) const {
  std::string facts = compiler + '\n' + target.cpu + '\n' + target.features + '\n' +
                      std::to_string(target.vectorBytes) + '\n' + kernel.str();
  return llvm::toHex(digestOf(facts), /*LowerCase=*/true);
}

/// The prefix is what llvm::pruneCache looks at.
std::string ObjectCache::pathOf(llvm::StringRef key) const { return folder + "/llvmcache-" + key.str(); }

std::optional<std::string> ObjectCache::find(llvm::StringRef key) const {
  auto file = llvm::MemoryBuffer::getFile(pathOf(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() < digestBytes)
    return std::nullopt;
  llvm::StringRef bytes = (*file)->getBuffer(), object = bytes.drop_front(digestBytes);
  if (bytes.take_front(digestBytes) != digestOf(object))
    return std::nullopt;
  return object.str();
}

void ObjectCache::store(llvm::StringRef key, llvm::StringRef object) const {
  int descriptor = -1;
  llvm::SmallString<128> temporary;
  // Begins like the others, so that what a killed process leaves is pruned with them.
  if (llvm::sys::fs::createUniqueFile(folder + "/llvmcache-%%%%%%%%.partial", descriptor, temporary,
                                      llvm::sys::fs::OF_None, llvm::sys::fs::owner_read | llvm::sys::fs::owner_write))
    return;
  llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
  file << digestOf(object) << object;
  file.close();
  const bool isWritten = !file.has_error();
  file.clear_error();
  if (!isWritten || llvm::sys::fs::rename(temporary, pathOf(key)))
    llvm::sys::fs::remove(temporary);
}

void ObjectCache::prune() const {
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(60);
  policy.Expiration = std::chrono::hours(24 * 28);
  policy.MaxSizeBytes = mostBytes;
  policy.MaxSizeFiles = 100'000;
  llvm::pruneCache(folder, policy);
}

} // namespace dg::codegen
