// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/ByteOrder.h"
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"

#include <algorithm>
#include <array>
#include <new>
#include <zlib.h>

namespace dg::data {

/// Deflate cannot expand more than 1032 to 1: an upper bound of what a compressed file may claim to hold.
static constexpr int64_t maxInflation = 1032;

namespace {
struct IdxHeader {
  Tensor tensor; ///< type and shape; no data yet
  size_t headerBytes = 0;
  int64_t dataBytes = 0;
};
} // namespace

static Result<DType> elementTypeOf(const std::string &path, unsigned code) {
  switch (code) {
  case 0x08:
    return DType::u8;
  case 0x09:
    return DType::i8;
  case 0x0B:
    return DType::i16;
  case 0x0C:
    return DType::i32;
  case 0x0D:
    return DType::f32;
  case 0x0E:
    return DType::f64;
  default:
    return Status::error(ErrorKind::badInput, "{}: IDX element type 0x{:02x} is unknown; expected 0x08 to 0x0e", path,
                         code);
  }
}

/// `bytes` holds at least the header if the file does.
static Result<IdxHeader> parseHeader(const std::string &path, std::span<const std::byte> bytes) {
  if (bytes.size() < 4 || bytes[0] != std::byte(0) || bytes[1] != std::byte(0) || bytes[3] == std::byte(0) ||
      bytes[3] > std::byte(8))
    return Status::error(ErrorKind::badInput,
                         "{}: not a data file that is known (IDX, .npy, .npz, .safetensors, .u16 or .u32 tokens); "
                         "check the path, or write the data with numpy.save",
                         path);
  auto type = elementTypeOf(path, unsigned(bytes[2]));
  if (!type)
    return type.status();
  size_t rank = size_t(bytes[3]);
  IdxHeader header;
  header.headerBytes = 4 + 4 * rank;
  if (bytes.size() < header.headerBytes)
    return Status::error(ErrorKind::badInput, "{}: truncated: {} bytes, an IDX header of rank {} has {}", path,
                         bytes.size(), rank, header.headerBytes);
  header.tensor.type = *type;
  for (size_t i = 0; i < rank; ++i)
    header.tensor.shape.push_back(readBigEndian32(bytes.data() + 4 + 4 * i));
  auto size = bytesOf(header.tensor.shape, sizeOf(*type));
  if (!size)
    return Status::error(ErrorKind::badInput, "{}: the header claims the impossible shape {}", path,
                         describeShape(header.tensor.shape));
  header.dataBytes = *size;
  return header;
}

static Status wrongSize(const std::string &path, const IdxHeader &header, const std::string &found) {
  return Status::error(ErrorKind::badInput, "{}: the header says {} of {} ({} bytes), the file holds {}; copy it again",
                       path, describeShape(header.tensor.shape), nameOf(header.tensor.type), header.dataBytes, found);
}

static Result<std::shared_ptr<std::vector<std::byte>>> allocate(const std::string &path, int64_t bytes) {
  try {
    return std::make_shared<std::vector<std::byte>>(size_t(bytes));
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", path, bytes);
  }
}

static Tensor finish(IdxHeader header, std::shared_ptr<std::vector<std::byte>> values) {
  int64_t elementBytes = sizeOf(header.tensor.type);
  if (elementBytes > 1)
    swapBytes(*values, size_t(elementBytes));
  header.tensor.data = values->data();
  header.tensor.owner = std::move(values);
  return std::move(header.tensor);
}

namespace {
/// Inflates gzip data that lies in memory. Members that follow each other are one stream, and what follows the last is
/// ignored, as gunzip does.
class GzipReader {
public:
  explicit GzipReader(std::span<const std::byte> bytes) : rest(bytes) {
    isGood = inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK;
  }
  ~GzipReader() { inflateEnd(&stream); }
  GzipReader(const GzipReader &) = delete;
  GzipReader &operator=(const GzipReader &) = delete;

  /// Fills `to` as far as there are bytes; returns how many there were, or -1 on damage.
  int64_t read(std::span<std::byte> to) {
    size_t done = 0;
    while (isGood && !isAtEnd && done < to.size()) {
      uInt give = uInt(std::min(rest.size(), mostAtOnce)), room = uInt(std::min(to.size() - done, mostAtOnce));
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(rest.data()));
      stream.next_out = reinterpret_cast<Bytef *>(to.data() + done);
      stream.avail_in = give, stream.avail_out = room;
      int code = inflate(&stream, Z_NO_FLUSH);
      rest = rest.subspan(give - stream.avail_in);
      done += room - stream.avail_out;
      if (code == Z_STREAM_END) {
        isAtEnd = !isGzip(rest);
        isGood = isAtEnd || inflateReset(&stream) == Z_OK;
      } else {
        isGood = code == Z_OK;
      }
    }
    return isGood ? int64_t(done) : -1;
  }

  /// Why read gave -1.
  const char *fault() const { return stream.msg ? stream.msg : "it ends too early"; }

  static bool isGzip(std::span<const std::byte> bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte(0x1f) && bytes[1] == std::byte(0x8b);
  }

private:
  static constexpr size_t mostAtOnce = size_t(1) << 30; // zlib counts in 32 bits
  z_stream stream{};
  std::span<const std::byte> rest;
  bool isGood = false, isAtEnd = false;
};
} // namespace

static Result<Tensor> readCompressed(const std::string &where, std::span<const std::byte> bytes) {
  GzipReader file(bytes);
  auto damaged = [&] { return Status::error(ErrorKind::badInput, "{}: damaged gzip data: {}", where, file.fault()); };
  std::array<std::byte, 4 + 4 * 8> start;
  int64_t found = file.read(std::span(start).first(4));
  if (found < 0)
    return damaged();
  if (found == 4 && start[3] <= std::byte(8)) {
    int64_t more = file.read(std::span(start).subspan(4, 4 * size_t(start[3])));
    if (more < 0)
      return damaged();
    found += more;
  }
  auto header = parseHeader(where, std::span(start).first(size_t(found)));
  if (!header)
    return header.status();
  if (header->dataBytes / maxInflation > int64_t(bytes.size()))
    return wrongSize(where, *header, fmt::format("only {} compressed bytes", bytes.size()));
  auto values = allocate(where, header->dataBytes);
  if (!values)
    return values.status();
  int64_t read = file.read(**values);
  if (read < 0)
    return damaged();
  // One byte more than there is, so that the end is reached and its checksum compared.
  std::byte extra;
  int64_t rest = read == header->dataBytes ? file.read({&extra, 1}) : 0;
  if (rest < 0)
    return damaged();
  if (read != header->dataBytes || rest != 0)
    return wrongSize(where, *header, rest ? "more" : fmt::format("{} bytes", read));
  return finish(std::move(*header), std::move(*values));
}

Result<Tensor> readIdx(const std::string &where, std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (GzipReader::isGzip(bytes))
    return readCompressed(where, bytes);
  auto header = parseHeader(where, bytes);
  if (!header)
    return header.status();
  std::span<const std::byte> values = bytes.subspan(header->headerBytes);
  if (int64_t(values.size()) != header->dataBytes)
    return wrongSize(where, *header, fmt::format("{} bytes", values.size()));
  if (sizeOf(header->tensor.type) == 1) {
    header->tensor.data = values.data();
    header->tensor.owner = std::move(owner);
    return std::move(header->tensor);
  }
  auto copy = allocate(where, header->dataBytes);
  if (!copy)
    return copy.status();
  std::copy(values.begin(), values.end(), (*copy)->begin());
  return finish(std::move(*header), std::move(*copy));
}

Result<Tensor> openIdx(const std::string &path) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  return readIdx(path, (*file)->bytes(), *file);
}

} // namespace dg::data
