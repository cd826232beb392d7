// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ZipFile.h"

#include <zlib.h>

namespace dg::fuzz {

static constexpr size_t mostContent = 1 << 16;

static uint64_t numberAt(std::string_view bytes, size_t at, size_t width) {
  uint64_t number = 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
    number |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
  return number;
}

static void append(std::string &to, uint64_t number, size_t width) {
  for (size_t i = 0; i < width; ++i)
    to += char(number >> (8 * i));
}

std::optional<std::string> inflateText(std::string_view bytes, int windowBits, size_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, windowBits) != Z_OK)
    return std::nullopt;
  std::string text(most, '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(text.data());
  stream.avail_out = uInt(text.size());
  int code = inflate(&stream, Z_FINISH);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return code == Z_STREAM_END ? std::optional(text) : std::nullopt;
}

std::string deflateText(std::string_view bytes, int windowBits) {
  z_stream stream{};
  // The least memory: a mutator runs a million times.
  int smallest = windowBits < 0 ? -9 : windowBits - 15 + 9;
  if (deflateInit2(&stream, 1, Z_DEFLATED, smallest, 1, Z_DEFAULT_STRATEGY) != Z_OK)
    return "";
  std::string text(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(text.data());
  stream.avail_out = uInt(text.size());
  deflate(&stream, Z_FINISH);
  text.resize(stream.total_out);
  deflateEnd(&stream);
  return text;
}

std::optional<std::vector<ZipEntry>> readZip(std::string_view bytes) {
  size_t end = bytes.rfind("PK\5\6");
  if (end == std::string_view::npos)
    return std::nullopt;
  size_t at = numberAt(bytes, end + 16, 4), count = numberAt(bytes, end + 10, 2);
  std::vector<ZipEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    if (at > bytes.size() || bytes.substr(at, 4) != "PK\1\2")
      return std::nullopt;
    size_t method = numberAt(bytes, at + 10, 2), stored = numberAt(bytes, at + 20, 4),
           nameBytes = numberAt(bytes, at + 28, 2), extraBytes = numberAt(bytes, at + 30, 2),
           commentBytes = numberAt(bytes, at + 32, 2), header = numberAt(bytes, at + 42, 4);
    size_t content = header + 30 + numberAt(bytes, header + 26, 2) + numberAt(bytes, header + 28, 2);
    if (content > bytes.size() || stored > bytes.size() - content || at + 46 > bytes.size())
      return std::nullopt;
    ZipEntry entry{std::string(bytes.substr(at + 46, nameBytes)), std::string(bytes.substr(content, stored)),
                   method == 8};
    if (entry.isDeflated) {
      auto text = inflateText(entry.content, rawDeflate, mostContent);
      if (!text)
        return std::nullopt;
      entry.content = *text;
    }
    entries.push_back(std::move(entry));
    at += 46 + nameBytes + extraBytes + commentBytes;
  }
  return entries;
}

ZipText writeZip(const std::vector<ZipEntry> &entries, size_t alignment, std::string_view comment) {
  constexpr uint64_t paddingField = 0xD935, fieldHeaderBytes = 4, localHeaderBytes = 30;
  ZipText zip;
  std::string directory;
  for (const ZipEntry &entry : entries) {
    std::string content = entry.isDeflated ? deflateText(entry.content, rawDeflate) : entry.content;
    uint64_t checksum = crc32(0, reinterpret_cast<const Bytef *>(entry.content.data()), uInt(entry.content.size()));
    size_t header = zip.bytes.size(), extra = 0;
    if (alignment > 1) {
      size_t unpadded = header + localHeaderBytes + entry.name.size() + fieldHeaderBytes;
      extra = fieldHeaderBytes + (alignment - unpadded % alignment) % alignment;
    }
    auto common = [&](std::string &to) { // the fields that both headers have, from the version on
      append(to, 10, 2);
      append(to, 0, 2);
      append(to, entry.isDeflated ? 8 : 0, 2);
      append(to, uint64_t(0x21) << 16, 4);
      append(to, checksum, 4);
      append(to, content.size(), 4);
      append(to, entry.content.size(), 4);
      append(to, entry.name.size(), 2);
    };
    zip.bytes += "PK\3\4";
    common(zip.bytes);
    append(zip.bytes, extra, 2);
    zip.bytes += entry.name;
    if (extra) {
      append(zip.bytes, paddingField, 2);
      append(zip.bytes, extra - fieldHeaderBytes, 2);
      zip.bytes.append(extra - fieldHeaderBytes, '\0');
    }
    zip.offsets.push_back(zip.bytes.size());
    zip.bytes += content;
    directory += "PK\1\2";
    append(directory, 10, 2);
    common(directory);
    append(directory, 0, 2);     // extra
    append(directory, 0, 2);     // comment
    append(directory, 0, 2 + 2); // disk, internal attributes
    append(directory, 0, 4);     // external attributes
    append(directory, header, 4);
    directory += entry.name;
  }
  size_t start = zip.bytes.size();
  zip.bytes += directory;
  zip.bytes += "PK\5\6";
  append(zip.bytes, 0, 4);
  append(zip.bytes, entries.size(), 2);
  append(zip.bytes, entries.size(), 2);
  append(zip.bytes, directory.size(), 4);
  append(zip.bytes, start, 4);
  append(zip.bytes, comment.size(), 2);
  zip.bytes += comment;
  return zip;
}

} // namespace dg::fuzz
