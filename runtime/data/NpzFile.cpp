// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TensorFiles.h"

#include <memory>
#include <new>
#include <zip.h>

namespace dg::data {

namespace {
struct CloseArchive {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t *entry) const { zip_fclose(entry); }
};
} // namespace

/// The one array of the archive, or an error that lists what there is.
static Result<std::string> onlyArray(const std::string &path, zip_t *archive) {
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i)
    if (const char *name = zip_get_name(archive, zip_uint64_t(i), 0))
      names.push_back(name);
  if (names.size() == 1)
    return names.front();
  return Status::error(ErrorKind::badInput, "{}: holds {} arrays ({}); say which: {}:NAME", path, names.size(),
                       fmt::join(names, ", "), path);
}

Result<Tensor> openNpz(const std::string &path, const std::string &name) {
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    Status status =
        Status::error(ErrorKind::badInput, "{}: cannot be opened as .npz: {}", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return status;
  }
  std::string entry = name + ".npy";
  if (name.empty()) {
    auto only = onlyArray(path, archive.get());
    if (!only)
      return only.status();
    entry = *only;
  }
  zip_stat_t info;
  if (zip_stat(archive.get(), entry.c_str(), 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE) ||
      !(info.valid & ZIP_STAT_COMP_SIZE))
    return Status::error(ErrorKind::badInput, "{}: has no array '{}'", path, name);
  std::string where = path + ":" + entry;
  // Deflate expands at most 1032 to 1; a larger claim is a lie, found before the memory is asked for.
  if (info.size / 1032 > info.comp_size + 1)
    return Status::error(ErrorKind::badInput, "{}: claims {} bytes from {} compressed", where, info.size,
                         info.comp_size);
  std::shared_ptr<std::vector<std::byte>> bytes;
  try {
    bytes = std::make_shared<std::vector<std::byte>>(info.size);
  } catch (const std::exception &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", where, info.size);
  }
  std::unique_ptr<zip_file_t, CloseEntry> file(zip_fopen(archive.get(), entry.c_str(), 0));
  size_t done = 0;
  while (file && done < bytes->size()) {
    zip_int64_t count = zip_fread(file.get(), bytes->data() + done, bytes->size() - done);
    if (count <= 0)
      break;
    done += size_t(count);
  }
  std::byte extra;
  if (!file || done != bytes->size() || zip_fread(file.get(), &extra, 1) != 0)
    return Status::error(ErrorKind::badInput, "{}: damaged: {} of {} bytes could be read", where, done, bytes->size());
  std::span<const std::byte> view(*bytes);
  return readNpy(where, view, std::move(bytes));
}

} // namespace dg::data
