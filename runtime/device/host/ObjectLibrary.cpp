// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/ObjectLibrary.h"

#include "runtime/device/host/ObjectFile.h"
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dg {

Result<std::unique_ptr<ObjectLibrary>> ObjectLibrary::load(std::span<const std::byte> bytes, const std::string &name) {
  std::unique_ptr<ObjectLibrary> library(new ObjectLibrary);
  DG_RETURN_IF_ERROR(library->add(bytes, name));
  return library;
}

ObjectLibrary::~ObjectLibrary() {
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    if (object->handle)
      dlclose(object->handle);
    close(object->file);
  }
}

Status ObjectLibrary::add(std::span<const std::byte> bytes, const std::string &name) {
  DG_RETURN_IF_ERROR(checkObject(bytes, name));
  Object object;
  object.file = memfd_create("dg-object", MFD_CLOEXEC);
  if (object.file < 0)
    return Status::error(ErrorKind::runFailed, "object '{}': memfd_create failed: {}", name, std::strerror(errno));
  // The file stays open as long as the object is loaded: dlopen recognises objects by their path, and a closed
  // descriptor's number would come back as the path of the next object.
  objects.push_back(object);
  if (int code = writeAllAt(object.file, bytes.data(), bytes.size(), 0); code != 0)
    return Status::error(ErrorKind::runFailed, "object '{}': no memory for its {} bytes: {}", name, bytes.size(),
                         std::strerror(code));

  void *handle = dlopen(fmt::format("/proc/self/fd/{}", object.file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Status::error(ErrorKind::badInput, "object '{}' cannot be loaded: {}; compile the job again with this dgc",
                         name, dlerror());
  objects.back().handle = handle;
  return Status::ok();
}

void *ObjectLibrary::addressOf(const std::string &symbol) const {
  for (const Object &object : objects)
    if (void *address = dlsym(object.handle, symbol.c_str()))
      return address;
  return nullptr;
}

dg_kernel ObjectLibrary::find(const std::string &symbol) const {
  return reinterpret_cast<dg_kernel>(addressOf(symbol));
}

std::optional<uint32_t> ObjectLibrary::tilesOf(const std::string &symbol) const {
  auto *tiles = static_cast<const uint32_t *>(addressOf(symbol + DG_TILES_SUFFIX));
  return tiles ? std::optional(*tiles) : std::nullopt;
}

} // namespace dg
