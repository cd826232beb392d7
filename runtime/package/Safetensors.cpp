// SPDX-License-Identifier: Apache-2.0
// Reading and laying out safetensors. Wide types come first in a layout, so that every tensor is aligned to its
// element.
#include "runtime/package/Safetensors.h"

#include "runtime/support/Json.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <set>

namespace dg::package {

namespace {

using Json = nlohmann::json; // a sorted map: many names cost O(n log n)

static_assert(std::endian::native == std::endian::little, "the header length is read as it stands");

constexpr uint64_t lengthBytes = 8, maxHeaderBytes = 100'000'000, dataAlignment = 64;
constexpr const char *metadataKey = "__metadata__";

/// False if the product does not fit.
bool multiply(uint64_t a, uint64_t b, uint64_t &product) { return !__builtin_mul_overflow(a, b, &product); }

/// Bytes of a tensor; false on an unknown type or an overflow.
bool sizeOf(const TensorSpec &tensor, uint64_t &bytes) {
  bytes = uint64_t(bytesOfDtype(tensor.dtype));
  if (bytes == 0)
    return false;
  for (int64_t size : tensor.shape)
    if (size < 0 || !multiply(bytes, uint64_t(size), bytes))
      return false;
  return true;
}

/// Parses the header; a name that occurs twice is an error, which nlohmann would hide.
Result<Json> parseHeader(std::string_view text, const std::string &file) {
  std::set<std::string> seen;
  std::string twice;
  auto watch = [&](int depth, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  auto read = parseJson(text, file, watch);
  if (!read)
    return Status::error(ErrorKind::badInput, "{}; expected the header of a safetensors file", read.status().message());
  Json &header = *read;
  if (!header.is_object())
    return Status::error(ErrorKind::badInput, "{}: not a safetensors file: its header is no JSON object", file);
  if (!twice.empty())
    return Status::error(ErrorKind::badInput, "{}: tensor '{}' occurs twice", file, twice);
  return read;
}

Status readMetadata(const Json &json, std::map<std::string, std::string> &notes, const std::string &file) {
  if (!json.is_object())
    return Status::error(ErrorKind::badInput, "{}: {} is no object", file, metadataKey);
  for (const auto &item : json.items()) {
    if (!item.value().is_string())
      return Status::error(ErrorKind::badInput, "{}: {}.{} is no string", file, metadataKey, item.key());
    notes[item.key()] = item.value().get<std::string>();
  }
  return Status::ok();
}

bool isCount(const Json &json) { return json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t(INT64_MAX); }

Status readTensor(const std::string &name, const Json &json, std::span<const std::byte> data, Tensor &tensor,
                  const std::string &file) {
  auto wrong = [&](std::string_view what) {
    return Status::error(ErrorKind::badInput, "{}: tensor '{}': {}", file, name, what);
  };
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return wrong("expected exactly dtype, shape and data_offsets");
  tensor.name = name;
  if (!json["dtype"].is_string())
    return wrong("dtype is no string");
  tensor.dtype = json["dtype"].get<std::string>();
  if (bytesOfDtype(tensor.dtype) == 0)
    return wrong(fmt::format("unknown dtype '{}'", tensor.dtype));
  const Json &shape = json["shape"], &offsets = json["data_offsets"];
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), isCount))
    return wrong("shape is no list of sizes");
  tensor.shape = shape.get<std::vector<int64_t>>();
  if (!offsets.is_array() || offsets.size() != 2 || !isCount(offsets[0]) || !isCount(offsets[1]))
    return wrong("data_offsets are not [begin, end]");
  uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>(), expected = 0;
  if (begin > end || end > data.size())
    return wrong(fmt::format("bytes {} to {} do not lie in the {} bytes of data; the file is truncated or altered",
                             begin, end, data.size()));
  if (!sizeOf(tensor, expected) || expected != end - begin)
    return wrong(fmt::format("{} bytes do not fit {} of its shape", end - begin, tensor.dtype));
  tensor.data = data.subspan(begin, end - begin);
  return Status::ok();
}

} // namespace

int64_t bytesOfDtype(std::string_view dtype) {
  struct Entry {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Entry table[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},     {"I32", 4},
                                    {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2},     {"U16", 2},
                                    {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const Entry &entry : table)
    if (entry.name == dtype)
      return entry.bytes;
  return 0;
}

Result<Safetensors> Safetensors::parse(std::span<const std::byte> bytes, const std::string &file) {
  uint64_t headerBytes = 0;
  if (bytes.size() < lengthBytes)
    return Status::error(ErrorKind::badInput, "{}: {} bytes are no safetensors file", file, bytes.size());
  std::memcpy(&headerBytes, bytes.data(), lengthBytes);
  if (headerBytes > maxHeaderBytes || headerBytes > bytes.size() - lengthBytes)
    return Status::error(ErrorKind::badInput,
                         "{}: a header of {} bytes in a file of {}; not a safetensors file, or truncated", file,
                         headerBytes, bytes.size());
  Result<Json> header =
      parseHeader({reinterpret_cast<const char *>(bytes.data()) + lengthBytes, size_t(headerBytes)}, file);
  if (!header)
    return header.status();

  Safetensors result;
  std::span<const std::byte> data = bytes.subspan(lengthBytes + headerBytes);
  for (const auto &item : header->items()) {
    if (item.key() == metadataKey) {
      DG_RETURN_IF_ERROR(readMetadata(item.value(), result.notes, file));
      continue;
    }
    DG_RETURN_IF_ERROR(readTensor(item.key(), item.value(), data, result.list.emplace_back(), file));
  }
  // Empty tensors share their begin with the next one, so they are sorted by their end too.
  std::sort(result.list.begin(), result.list.end(), [](const Tensor &a, const Tensor &b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  const std::byte *expected = data.data();
  for (size_t i = 0; i < result.list.size(); ++i) {
    const Tensor &tensor = result.list[i];
    if (tensor.data.data() != expected)
      return Status::error(ErrorKind::badInput, "{}: tensor '{}' starts at byte {}, expected {}: a hole or an overlap",
                           file, tensor.name, tensor.data.data() - data.data(), expected - data.data());
    expected += tensor.data.size();
    result.byName.emplace(tensor.name, i);
  }
  if (expected != data.data() + data.size())
    return Status::error(ErrorKind::badInput, "{}: {} bytes behind the last tensor", file,
                         data.data() + data.size() - expected);
  return result;
}

const Tensor *Safetensors::find(std::string_view name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : &list[found->second];
}

Result<SafetensorsLayout> layoutSafetensors(const std::vector<TensorSpec> &tensors,
                                            const std::map<std::string, std::string> &metadata) {
  SafetensorsLayout layout;
  layout.offsets.resize(tensors.size());
  layout.sizes.resize(tensors.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == metadataKey || !seen.insert(tensors[i].name).second)
      return Status::error(ErrorKind::badInput, "tensor '{}': the name is double or reserved", tensors[i].name);
    if (!sizeOf(tensors[i], layout.sizes[i]))
      return Status::error(ErrorKind::badInput, "tensor '{}': unknown dtype '{}', or a shape that is too large",
                           tensors[i].name, tensors[i].dtype);
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    int64_t bytesA = bytesOfDtype(tensors[a].dtype), bytesB = bytesOfDtype(tensors[b].dtype);
    return bytesA != bytesB ? bytesA > bytesB : a < b;
  });

  Json header = Json::object();
  if (!metadata.empty())
    header[metadataKey] = metadata;
  uint64_t dataBytes = 0;
  for (size_t i : order) {
    layout.offsets[i] = dataBytes;
    if (__builtin_add_overflow(dataBytes, layout.sizes[i], &dataBytes) || dataBytes > uint64_t(INT64_MAX))
      return Status::error(ErrorKind::badInput, "tensor '{}': the file would exceed 2^63 bytes", tensors[i].name);
    header[tensors[i].name] = {{"dtype", tensors[i].dtype},
                               {"shape", tensors[i].shape},
                               {"data_offsets", {layout.offsets[i], layout.offsets[i] + layout.sizes[i]}}};
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((lengthBytes + text.size() + dataAlignment - 1) / dataAlignment * dataAlignment - lengthBytes, ' ');
  if (text.size() > maxHeaderBytes)
    return Status::error(ErrorKind::badInput, "{} tensors need a header of {} bytes, at most {} are allowed",
                         tensors.size(), text.size(), maxHeaderBytes);
  uint64_t headerBytes = text.size();
  layout.header.assign(reinterpret_cast<const char *>(&headerBytes), lengthBytes);
  layout.header += text;
  for (uint64_t &offset : layout.offsets)
    offset += layout.header.size();
  layout.fileBytes = layout.header.size() + dataBytes;
  return layout;
}

} // namespace dg::package
