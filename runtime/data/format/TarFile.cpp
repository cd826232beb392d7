// SPDX-License-Identifier: Apache-2.0
// By hand, because libarchive reads a stream: it does not say where a file's bytes lie, and samples are read where they
// lie, in any order (docs/decisions/2026-11-19-reading-data.md).
#include "runtime/data/format/TarFile.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dg::data {

namespace {

constexpr size_t blockBytes = 512;
constexpr uint64_t mostNameBytes = 1 << 16; // of a header that holds a long name

/// One header of 512 bytes.
class Header {
public:
  explicit Header(std::span<const std::byte> block) : text(reinterpret_cast<const char *>(block.data()), blockBytes) {}

  bool isZero() const { return text.find_first_not_of('\0') == std::string_view::npos; }
  char type() const { return text[156]; }
  std::optional<uint64_t> size() const { return number(124, 12); }
  /// The sum of all bytes, those of the sum itself taken as spaces.
  bool isIntact() const {
    constexpr size_t sumAt = 148, sumBytes = 8;
    uint64_t sum = sumBytes * ' ';
    for (size_t i = 0; i < blockBytes; ++i)
      sum += i < sumAt || i >= sumAt + sumBytes ? uint8_t(text[i]) : 0;
    return number(sumAt, sumBytes) == sum;
  }
  std::string name() const {
    std::string name(field(0, 100));
    // GNU's own header has other fields where the prefix would be.
    if (std::string_view prefix = field(345, 155);
        text.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    return name;
  }

private:
  std::string_view field(size_t at, size_t bytes) const {
    std::string_view value = text.substr(at, bytes);
    return value.substr(0, value.find('\0'));
  }
  /// Octal digits, or, where they are too few, the bytes of the number after a first bit.
  std::optional<uint64_t> number(size_t at, size_t bytes) const {
    std::string_view value = text.substr(at, bytes);
    uint64_t number = 0;
    if (uint8_t(value[0]) & 0x80) {
      for (size_t i = 0; i < bytes; ++i) {
        const uint8_t byte = uint8_t(value[i]) & (i == 0 ? 0x7f : 0xff);
        if (number >> 55)
          return std::nullopt;
        number = number << 8 | byte;
      }
      return number;
    }
    value = value.substr(std::min(value.find_first_not_of(' '), value.size()));
    value = value.substr(0, value.find_first_of(std::string_view(" \0", 2)));
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number, 8);
    if (error != std::errc() || end != value.data() + value.size())
      return std::nullopt;
    return number;
  }
  std::string_view text;
};

/// What a POSIX header says about the file after it.
struct Extension {
  std::optional<std::string> path;
  std::optional<uint64_t> size;
  bool isSparse = false;

  /// "27 path=…\n" and so on. False if it is damaged.
  bool read(std::string_view text) {
    while (!text.empty()) {
      size_t length = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
      const size_t digits = size_t(end - text.data());
      if (error != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
          text[length - 1] != '\n')
        return false;
      std::string_view record = text.substr(digits + 1, length - digits - 2);
      text.remove_prefix(length);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos)
        return false;
      std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
      if (key == "path") {
        path = std::string(value);
      } else if (key == "size") {
        uint64_t number = 0;
        auto [last, bad] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (bad != std::errc() || last != value.data() + value.size())
          return false;
        size = number;
      }
      isSparse = isSparse || key.starts_with("GNU.sparse");
    }
    return true;
  }
};

/// Nothing is ever unpacked; but who names such a path means no good, or has packed another thing than a data set.
bool leadsOutside(std::string_view name) {
  if (name.starts_with('/') || name.find('\0') != std::string_view::npos)
    return true;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..")
      return true;
    begin = end + 1;
  }
  return false;
}

} // namespace

Status readTar(const std::string &where, std::span<const std::byte> bytes,
               const std::function<Status(const TarMember &)> &visit) {
  auto damaged = [&](size_t at, const std::string &what) {
    return Status::error(ErrorKind::badInput, "{}: {} at byte {} of {}; copy it again, or make it anew with tar", where,
                         what, at, bytes.size());
  };
  Extension extension;
  for (size_t at = 0;;) {
    if (bytes.size() - at < blockBytes)
      return damaged(at, "the tar archive is cut off: its end is missing");
    const Header header(bytes.subspan(at, blockBytes));
    if (header.isZero()) {
      auto rest = bytes.subspan(at);
      if (std::any_of(rest.begin(), rest.end(), [](std::byte byte) { return byte != std::byte(0); }))
        return damaged(at, "more follows the end of the tar archive");
      return Status::ok();
    }
    auto size = header.size();
    if (!header.isIntact() || !size)
      return damaged(at, at == 0 ? "not a tar archive, or a compressed one: no header"
                                 : "damaged header of the tar archive");
    const char type = header.type();
    const bool isFile = type == '0' || type == '\0' || type == '7';
    if (isFile && extension.size)
      size = extension.size;
    const size_t begin = at + blockBytes;
    if (*size > bytes.size() - begin)
      return damaged(at, fmt::format("the tar archive is cut off: a file of {} bytes", *size));
    auto content = bytes.subspan(begin, size_t(*size));
    at = begin + std::min((size_t(*size) + blockBytes - 1) / blockBytes * blockBytes, bytes.size() - begin);
    std::string_view text(reinterpret_cast<const char *>(content.data()), content.size());
    if (type == 'x' || type == 'L') {
      if (*size > mostNameBytes || (type == 'x' && !extension.read(text)))
        return damaged(begin, "damaged long header of the tar archive");
      if (type == 'L')
        extension.path = std::string(text.substr(0, text.find('\0')));
      continue;
    }
    if (type == 'g' || type == 'K')
      continue; // of all files; of a link, which is refused
    const std::string name = extension.path.value_or(header.name());
    const bool isSparse = type == 'S' || extension.isSparse;
    extension = {};
    if (leadsOutside(name))
      return damaged(begin - blockBytes, fmt::format("'{}' is a path outside of the tar archive", name));
    if (type == '5')
      continue;
    if (!isFile || isSparse)
      return damaged(begin - blockBytes, fmt::format("'{}' is no plain file but a {}", name,
                                                     type == '1' || type == '2' ? "link"
                                                     : isSparse                 ? "sparse file"
                                                                                : "device or unknown entry"));
    DG_RETURN_IF_ERROR(visit({name, content}));
  }
}

} // namespace dg::data
