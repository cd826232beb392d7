// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/ByteOrder.h"
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"

#include <charconv>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string_view>

namespace dg::data {

/// NumPy itself refuses headers above 10,000 bytes unless told otherwise; ours are far shorter.
static constexpr size_t maxHeaderBytes = 1 << 16;

namespace {

struct NpyHeader {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Reads the Python dictionary of an .npy header: exactly the keys descr, fortran_order and shape, in any order.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  /// Nothing if the text is anything else.
  std::optional<NpyHeader> parse() {
    NpyHeader header;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return std::nullopt;
    while (!take('}')) {
      auto key = quoted();
      if (!key || !take(':'))
        return std::nullopt;
      bool good = false;
      if (*key == "descr" && !hasDescr) {
        auto value = quoted();
        good = hasDescr = value.has_value();
        header.descr = value.value_or("");
      } else if (*key == "fortran_order" && !hasOrder) {
        header.fortranOrder = word("True");
        good = hasOrder = header.fortranOrder || word("False");
      } else if (*key == "shape" && !hasShape) {
        good = hasShape = tuple(header.shape);
      }
      if (!good)
        return std::nullopt;
      take(',');
    }
    skipSpace();
    if (!rest.empty() || !hasDescr || !hasOrder || !hasShape)
      return std::nullopt;
    return header;
  }

private:
  void skipSpace() {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\n'))
      rest.remove_prefix(1);
  }
  bool take(char c) {
    skipSpace();
    if (rest.empty() || rest.front() != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  bool word(std::string_view expected) {
    skipSpace();
    if (!rest.starts_with(expected))
      return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::string> quoted() {
    skipSpace();
    if (rest.empty() || (rest.front() != '\'' && rest.front() != '"'))
      return std::nullopt;
    size_t end = rest.find(rest.front(), 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string text(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    return text;
  }
  bool tuple(std::vector<int64_t> &shape) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      int64_t dimension = 0;
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dimension);
      if (error != std::errc() || dimension < 0 || shape.size() == 32)
        return false;
      rest.remove_prefix(size_t(end - rest.data()));
      shape.push_back(dimension);
      if (!take(',')) {
        skipSpace();
        if (rest.empty() || rest.front() != ')')
          return false;
      }
    }
    return true;
  }
  std::string_view rest;
};

} // namespace

static const std::map<std::string, DType, std::less<>> &npyTypes() {
  static const std::map<std::string, DType, std::less<>> types = {
      {"b1", DType::i1},  {"u1", DType::u8},  {"i1", DType::i8},  {"u2", DType::u16},
      {"i2", DType::i16}, {"u4", DType::u32}, {"i4", DType::i32}, {"u8", DType::u64},
      {"i8", DType::i64}, {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}};
  return types;
}

Result<Tensor> readNpy(const std::string &where, std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  auto damaged = [&](const std::string &what) {
    return Status::error(ErrorKind::badInput, "{}: {}; copy it again, or write it with numpy.save", where, what);
  };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    return damaged("not an .npy file (its first bytes are not \\x93NUMPY)");
  unsigned version = unsigned(bytes[6]);
  if (version < 1 || version > 3)
    return damaged(fmt::format(".npy version {} is unknown; expected 1, 2 or 3", version));
  size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix)
    return damaged("truncated in the .npy header");
  size_t headerBytes = size_t(bytes[8]) | size_t(bytes[9]) << 8;
  if (version > 1)
    headerBytes |= size_t(bytes[10]) << 16 | size_t(bytes[11]) << 24;
  if (headerBytes > maxHeaderBytes)
    return damaged(fmt::format("the .npy header claims {} bytes; at most {} are read", headerBytes, maxHeaderBytes));
  if (bytes.size() - prefix < headerBytes)
    return damaged("truncated in the .npy header");
  std::string_view text(reinterpret_cast<const char *>(bytes.data()) + prefix, headerBytes);
  auto header = HeaderParser(text).parse();
  if (!header)
    return damaged("the .npy header is not a plain array's (objects and structures are not read)");
  char order = header->descr.empty() ? '?' : header->descr[0];
  auto type = npyTypes().find(header->descr.empty() ? "" : header->descr.substr(1));
  if (type == npyTypes().end() || (order != '<' && order != '>' && order != '|' && order != '='))
    return damaged(fmt::format("element type '{}' is not a number or boolean", header->descr));
  if (header->fortranOrder && header->shape.size() > 1)
    return Status::error(ErrorKind::badInput, "{}: is in Fortran order; write numpy.ascontiguousarray of it", where);
  std::span<const std::byte> values = bytes.subspan(prefix + headerBytes);
  auto size = bytesOf(header->shape, sizeOf(type->second));
  if (!size || *size != int64_t(values.size()))
    return damaged(fmt::format("the header says {} of {}{}, the file holds {} bytes", describeShape(header->shape),
                               nameOf(type->second), size ? fmt::format(" ({} bytes)", *size) : "", values.size()));
  Tensor tensor{type->second, header->shape, values.data(), std::move(owner)};
  if (order == '>' && sizeOf(tensor.type) > 1) {
    std::shared_ptr<std::vector<std::byte>> copy;
    try {
      copy = std::make_shared<std::vector<std::byte>>(values.begin(), values.end());
    } catch (const std::bad_alloc &) {
      return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", where, values.size());
    }
    swapBytes(*copy, size_t(sizeOf(tensor.type)));
    tensor.data = copy->data();
    tensor.owner = std::move(copy);
  }
  return tensor;
}

Result<Tensor> openNpy(const std::string &path) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  return readNpy(path, (*file)->bytes(), *file);
}

std::string makeNpyHeader(DType type, const std::vector<int64_t> &shape) {
  type = type == DType::bf16 ? DType::u16 : type; // NumPy has no bf16: its bits
  std::string descr;
  for (const auto &[name, known] : npyTypes())
    if (known == type)
      descr = (sizeOf(type) == 1 ? "|" : "<") + name;
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The magic, two version bytes and the length take 10 bytes; the header ends with a newline.
  dict.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  dict += '\n';
  std::string header = {'\x93', 'N', 'U', 'M', 'P', 'Y', '\x01', '\x00'};
  header += char(dict.size() & 0xff);
  header += char(dict.size() >> 8);
  return header + dict;
}

} // namespace dg::data
