// SPDX-License-Identifier: Apache-2.0
// Archives of numpy.savez and savez_compressed, read by libzip. A stored array stays where it is in the mapped file.
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"

#include <cstring>
#include <new>
#include <zip.h>

namespace dg::data {

namespace {

/// The bytes of an archive as libzip reads them, and where it read last: libzip does not say where an entry begins.
struct WatchedBytes {
  std::span<const std::byte> bytes;
  zip_uint64_t at = 0, lastRead = 0;
  zip_error_t error{};

  static zip_int64_t answer(void *self, void *data, zip_uint64_t length, zip_source_cmd_t command) {
    return static_cast<WatchedBytes *>(self)->answer(data, length, command);
  }

private:
  zip_int64_t answer(void *data, zip_uint64_t length, zip_source_cmd_t command) {
    switch (command) {
    case ZIP_SOURCE_OPEN:
      at = 0;
      return 0;
    case ZIP_SOURCE_READ: {
      zip_uint64_t count = std::min<zip_uint64_t>(length, bytes.size() - at);
      std::memcpy(data, bytes.data() + at, count);
      lastRead = at;
      at += count;
      return zip_int64_t(count);
    }
    case ZIP_SOURCE_SEEK: {
      zip_int64_t to = zip_source_seek_compute_offset(at, bytes.size(), data, length, &error);
      if (to < 0)
        return -1;
      at = zip_uint64_t(to);
      return 0;
    }
    case ZIP_SOURCE_TELL:
      return zip_int64_t(at);
    case ZIP_SOURCE_STAT: {
      auto *stat = static_cast<zip_stat_t *>(data);
      zip_stat_init(stat);
      stat->size = bytes.size();
      stat->valid |= ZIP_STAT_SIZE;
      return sizeof(zip_stat_t);
    }
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&error, data, length);
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_SEEK,
                                            ZIP_SOURCE_TELL, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default: // closing and freeing: the bytes are their owner's
      return 0;
    }
  }
};

struct ZipDeleter {
  void operator()(zip_t *archive) const { zip_discard(archive); }
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipDeleter>;

Archive openArchive(WatchedBytes &watched) {
  zip_source_t *source = zip_source_function_create(&WatchedBytes::answer, &watched, nullptr);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, nullptr) : nullptr;
  if (!archive)
    zip_source_free(source);
  return Archive(archive);
}

/// Reads the whole entry; libzip compares its checksum where its last byte is read.
bool readEntry(zip_t *archive, zip_uint64_t index, std::span<std::byte> to) {
  std::unique_ptr<zip_file_t, ZipDeleter> file(zip_fopen_index(archive, index, 0));
  std::byte beyond;
  return file && zip_fread(file.get(), to.data(), to.size()) == zip_int64_t(to.size()) &&
         zip_fread(file.get(), &beyond, 1) == 0;
}

} // namespace

Result<Tensor> openNpz(const std::string &path, const std::string &name) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  return readNpz(path, (*file)->bytes(), *file, name);
}

Result<Tensor> readNpz(const std::string &path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                       const std::string &name) {
  WatchedBytes watched{bytes};
  Archive archive = openArchive(watched);
  if (!archive)
    return Status::error(ErrorKind::badInput, "{}: not an .npz archive, or a truncated one", path);
  zip_int64_t numEntries = zip_get_num_entries(archive.get(), 0);
  zip_int64_t index = name.empty() ? (numEntries == 1 ? 0 : -1)
                                   : zip_name_locate(archive.get(), (name + ".npy").c_str(), ZIP_FL_ENC_RAW);
  if (index < 0) {
    std::vector<std::string> names;
    for (zip_int64_t i = 0; i < numEntries; ++i)
      if (const char *each = zip_get_name(archive.get(), zip_uint64_t(i), ZIP_FL_ENC_RAW))
        names.push_back(each);
    return Status::error(ErrorKind::badInput, "{}: holds {} arrays ({}), not one '{}'; say which: {}:NAME", path,
                         numEntries, fmt::join(names, ", "), name, path);
  }
  zip_stat_t entry;
  constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive.get(), zip_uint64_t(index), ZIP_FL_ENC_RAW, &entry) != 0 ||
      (entry.valid & needed) != needed)
    return Status::error(ErrorKind::badInput, "{}: damaged archive entry", path);
  std::string where = path + ":" + entry.name;
  bool isStored = entry.comp_method == ZIP_CM_STORE;
  // Deflate expands at most 1032 to 1: a larger claim is a lie, found before memory is asked for.
  if ((!isStored && entry.comp_method != ZIP_CM_DEFLATE) || (isStored && entry.size != entry.comp_size) ||
      entry.comp_size > bytes.size() || entry.size / 1032 > entry.comp_size)
    return Status::error(ErrorKind::badInput, "{}: damaged archive entry", where);
  if (isStored) {
    // Read in pieces for the checksum; the first read says where the entry begins.
    std::unique_ptr<zip_file_t, ZipDeleter> file(zip_fopen_index(archive.get(), zip_uint64_t(index), 0));
    std::byte piece[1 << 16];
    zip_int64_t count = file ? zip_fread(file.get(), piece, 1) : -1;
    const zip_uint64_t begin = watched.lastRead;
    while (count > 0)
      count = zip_fread(file.get(), piece, sizeof piece);
    if (count < 0 || begin > bytes.size() || entry.size > bytes.size() - begin)
      return Status::error(ErrorKind::badInput, "{}: damaged: its checksum differs", where);
    return readNpy(where, bytes.subspan(begin, entry.size), std::move(owner));
  }
  std::shared_ptr<std::vector<std::byte>> values;
  try {
    values = std::make_shared<std::vector<std::byte>>(entry.size);
  } catch (const std::exception &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", where, entry.size);
  }
  if (!readEntry(archive.get(), zip_uint64_t(index), *values))
    return Status::error(ErrorKind::badInput, "{}: damaged compressed data", where);
  return readNpy(where, *values, values);
}

} // namespace dg::data
