// SPDX-License-Identifier: Apache-2.0
// The part of zip that numpy.savez and savez_compressed write: stored and deflated entries, zip64. Read here rather
// than by the package's reader, which knows only packages.
#include "runtime/data/SharedMapping.h"
#include "runtime/data/TensorFiles.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <zlib.h>

namespace dg::data {

namespace {

/// Little-endian fields with bounds; a read past the end makes the cursor bad for good.
class Cursor {
public:
  Cursor(std::span<const std::byte> bytes, uint64_t at) : bytes(bytes), at(at), good(at <= bytes.size()) {}
  template <typename T> T read() {
    T value = 0;
    if (std::span<const std::byte> raw = take(sizeof(T)); !raw.empty())
      std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(uint64_t count) {
    if (!good || bytes.size() - at < count) {
      good = false;
      return {};
    }
    at += count;
    return bytes.subspan(at - count, count);
  }
  bool isGood() const { return good; }

private:
  std::span<const std::byte> bytes;
  uint64_t at;
  bool good;
};

struct Entry {
  std::string name;
  uint16_t method = 0;
  uint32_t checksum = 0;
  uint64_t compressedBytes = 0, bytes = 0, headerOffset = 0;
};

struct Directory {
  uint64_t offset = 0, entries = 0;
};

} // namespace

static constexpr uint32_t unknown32 = 0xffffffff;

/// The record at the very end (a comment of up to 64 KiB may follow), and the zip64 one that it may point to.
static std::optional<Directory> findDirectory(std::span<const std::byte> bytes) {
  constexpr size_t recordBytes = 22, maxComment = 0xffff, locatorBytes = 20;
  if (bytes.size() < recordBytes)
    return std::nullopt;
  size_t last = bytes.size() - recordBytes, first = last > maxComment ? last - maxComment : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (std::memcmp(bytes.data() + at, "PK\x05\x06", 4) != 0)
      continue;
    Cursor record(bytes, at + 10);
    Directory directory;
    directory.entries = record.read<uint16_t>();
    record.read<uint32_t>();
    directory.offset = record.read<uint32_t>();
    if (at + recordBytes + record.read<uint16_t>() != bytes.size())
      continue;
    if ((directory.entries != 0xffff && directory.offset != unknown32) || at < locatorBytes)
      return directory;
    Cursor locator(bytes, at - locatorBytes);
    if (locator.read<uint32_t>() != 0x07064b50)
      return directory;
    locator.read<uint32_t>();
    Cursor wide(bytes, locator.read<uint64_t>());
    if (wide.read<uint32_t>() != 0x06064b50)
      return std::nullopt;
    wide.take(28);
    directory.entries = wide.read<uint64_t>();
    wide.read<uint64_t>();
    directory.offset = wide.read<uint64_t>();
    return wide.isGood() ? std::optional(directory) : std::nullopt;
  }
  return std::nullopt;
}

/// Replaces the sizes that did not fit 32 bits by those of the zip64 extra field.
static bool widen(Entry &entry, std::span<const std::byte> extra) {
  Cursor fields(extra, 0);
  size_t left = extra.size();
  while (left >= 4) {
    uint16_t id = fields.read<uint16_t>(), size = fields.read<uint16_t>();
    Cursor field(fields.take(size), 0);
    if (!fields.isGood())
      return false;
    left -= 4 + size_t(size);
    if (id != 1)
      continue;
    for (uint64_t *value : {&entry.bytes, &entry.compressedBytes, &entry.headerOffset})
      if (*value == unknown32)
        *value = field.read<uint64_t>();
    return field.isGood();
  }
  return true;
}

static std::optional<std::vector<Entry>> readDirectory(std::span<const std::byte> bytes) {
  auto directory = findDirectory(bytes);
  // An entry takes at least 46 bytes, so a larger count is a lie.
  if (!directory || directory->entries > bytes.size() / 46)
    return std::nullopt;
  std::vector<Entry> entries;
  Cursor cursor(bytes, directory->offset);
  for (uint64_t i = 0; i < directory->entries; ++i) {
    Entry entry;
    uint32_t signature = cursor.read<uint32_t>();
    cursor.take(4);
    uint16_t flags = cursor.read<uint16_t>();
    entry.method = cursor.read<uint16_t>();
    cursor.take(4);
    entry.checksum = cursor.read<uint32_t>();
    entry.compressedBytes = cursor.read<uint32_t>();
    entry.bytes = cursor.read<uint32_t>();
    uint16_t nameBytes = cursor.read<uint16_t>(), extraBytes = cursor.read<uint16_t>(),
             comment = cursor.read<uint16_t>();
    cursor.take(8);
    entry.headerOffset = cursor.read<uint32_t>();
    std::span<const std::byte> name = cursor.take(nameBytes), extra = cursor.take(extraBytes);
    cursor.take(comment);
    if (!cursor.isGood() || signature != 0x02014b50 || (flags & 1) || !widen(entry, extra))
      return std::nullopt;
    entry.name.assign(reinterpret_cast<const char *>(name.data()), name.size());
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The raw bytes of an entry, behind its local header.
static std::optional<std::span<const std::byte>> rawBytes(std::span<const std::byte> bytes, const Entry &entry) {
  Cursor cursor(bytes, entry.headerOffset);
  bool isHeader = cursor.read<uint32_t>() == 0x04034b50;
  cursor.take(22);
  uint16_t nameBytes = cursor.read<uint16_t>(), extraBytes = cursor.read<uint16_t>();
  cursor.take(uint64_t(nameBytes) + extraBytes);
  std::span<const std::byte> raw = cursor.take(entry.compressedBytes);
  if (!isHeader || !cursor.isGood())
    return std::nullopt;
  return raw;
}

/// Inflates exactly `to.size()` bytes.
static bool inflateAll(std::span<const std::byte> from, std::span<std::byte> to) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  constexpr size_t most = std::numeric_limits<uInt>::max();
  size_t in = 0, out = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    uInt give = uInt(std::min(most, from.size() - in)), room = uInt(std::min(most, to.size() - out));
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(from.data() + in));
    stream.next_out = reinterpret_cast<Bytef *>(to.data() + out);
    stream.avail_in = give, stream.avail_out = room;
    code = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in, out += room - stream.avail_out;
    if (code == Z_OK && give == stream.avail_in && room == stream.avail_out)
      code = Z_BUF_ERROR;
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END && out == to.size() && in == from.size();
}

static uint32_t checksumOf(std::span<const std::byte> bytes) {
  return uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

Result<Tensor> openNpz(const std::string &path, const std::string &name) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  return readNpz(path, (*file)->bytes(), *file, name);
}

Result<Tensor> readNpz(const std::string &path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                       const std::string &name) {
  auto entries = readDirectory(bytes);
  if (!entries)
    return Status::error(ErrorKind::badInput, "{}: not an .npz archive, or a truncated one", path);
  auto found = std::find_if(entries->begin(), entries->end(),
                            [&](const Entry &entry) { return name.empty() || entry.name == name + ".npy"; });
  if (found == entries->end() || (name.empty() && entries->size() > 1)) {
    std::vector<std::string> names;
    for (const Entry &entry : *entries)
      names.push_back(entry.name);
    return Status::error(ErrorKind::badInput, "{}: holds {} arrays ({}), not one '{}'; say which: {}:NAME", path,
                         names.size(), fmt::join(names, ", "), name, path);
  }
  std::string where = path + ":" + found->name;
  auto raw = rawBytes(bytes, *found);
  bool isStored = found->method == 0;
  // Deflate expands at most 1032 to 1: a larger claim is a lie, found before memory is asked for.
  if (!raw || (!isStored && found->method != 8) || (isStored && found->bytes != found->compressedBytes) ||
      found->bytes / 1032 > found->compressedBytes)
    return Status::error(ErrorKind::badInput, "{}: damaged archive entry", where);
  if (isStored) {
    if (checksumOf(*raw) != found->checksum)
      return Status::error(ErrorKind::badInput, "{}: damaged: its checksum differs", where);
    return readNpy(where, *raw, std::move(owner));
  }
  std::shared_ptr<std::vector<std::byte>> values;
  try {
    values = std::make_shared<std::vector<std::byte>>(found->bytes);
  } catch (const std::exception &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", where, found->bytes);
  }
  if (!inflateAll(*raw, *values) || checksumOf(*values) != found->checksum)
    return Status::error(ErrorKind::badInput, "{}: damaged compressed data", where);
  return readNpy(where, *values, values);
}

} // namespace dg::data
