// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/file/ExternalFiles.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;

namespace dg::ir::onnx_import {

ExternalFiles::~ExternalFiles() {
  for (auto &file : files)
    if (!file.second.empty())
      ::munmap(const_cast<char *>(file.second.data()), file.second.size());
}

FailureOr<ArrayRef<char>> ExternalFiles::open(Location location, StringRef name) {
  if (auto known = files.find(name); known != files.end())
    return known->second;
  auto refuse = [&](const Twine &why) {
    return emitError(location) << "external data '" << name << "' " << why
                               << ": keep the file beside the model, in its folder '" << folder << "'";
  };
  if (name.empty() || name.contains('\0'))
    return refuse("is no file name");
  int root = ::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return refuse(Twine("cannot be looked for (") + std::strerror(errno) + ")");
  // The kernel resolves the name: no check of ours could be overtaken by a link made in between.
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int file = int(::syscall(SYS_openat2, root, name.str().c_str(), &how, sizeof how));
  int error = errno;
  ::close(root);
  if (file < 0) {
    if (error == EXDEV)
      return refuse("leads out of the model's folder");
    return error == ELOOP ? refuse("is a symbolic link, or behind one")
                          : refuse(Twine("cannot be opened (") + std::strerror(error) + ")");
  }
  struct stat about{};
  FailureOr<ArrayRef<char>> mapped = ArrayRef<char>();
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
    mapped = refuse("is not a plain file");
  else if (about.st_nlink != 1)
    mapped = refuse("has " + Twine(uint64_t(about.st_nlink)) + " names (hard links), expected one");
  else if (about.st_size > 0) {
    void *bytes = ::mmap(nullptr, size_t(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
      mapped = refuse(Twine("cannot be mapped (") + std::strerror(errno) + ")");
    else
      mapped = ArrayRef(static_cast<const char *>(bytes), size_t(about.st_size));
  }
  ::close(file);
  if (succeeded(mapped))
    files[name] = *mapped;
  return mapped;
}

FailureOr<ArrayRef<char>> ExternalFiles::read(Location location, StringRef name, int64_t offset, int64_t length) {
  FailureOr<ArrayRef<char>> file = open(location, name);
  if (failed(file))
    return failure();
  int64_t size = int64_t(file->size());
  if (offset < 0 || offset > size || (length >= 0 && length > size - offset))
    return emitError(location) << "external data '" << name << "' has " << size << " bytes, expected "
                               << (length < 0 ? "some" : std::to_string(length)) << " from " << offset
                               << " on: copy it again";
  return length < 0 ? file->drop_front(size_t(offset)) : file->slice(size_t(offset), size_t(length));
}

} // namespace dg::ir::onnx_import
