// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/ByteOrder.h"
#include "runtime/data/SharedMapping.h"
#include "runtime/data/TensorFiles.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/stat.h>
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

static Result<ElementType> elementTypeOf(const std::string &path, unsigned code) {
  switch (code) {
  case 0x08:
    return ElementType::u8;
  case 0x09:
    return ElementType::i8;
  case 0x0B:
    return ElementType::i16;
  case 0x0C:
    return ElementType::i32;
  case 0x0D:
    return ElementType::f32;
  case 0x0E:
    return ElementType::f64;
  }
  return Status::error(ErrorKind::badInput, "{}: IDX element type 0x{:02x} is unknown; expected 0x08 to 0x0e", path,
                       code);
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

/// Reads exactly `to.size()` bytes if there are so many; returns how many there were, or -1 on damage.
static int64_t readFully(gzFile file, std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    int count = gzread(file, to.data() + done, unsigned(std::min<size_t>(to.size() - done, 1u << 30)));
    if (count < 0)
      return -1;
    if (count == 0)
      break;
    done += size_t(count);
  }
  return int64_t(done);
}

static Result<Tensor> readCompressed(const std::string &path, gzFile file, int64_t compressedBytes) {
  auto damaged = [&] {
    int code = 0;
    return Status::error(ErrorKind::badInput, "{}: damaged gzip data: {}", path, gzerror(file, &code));
  };
  std::array<std::byte, 4 + 4 * 8> start;
  int64_t found = readFully(file, std::span(start).first(4));
  if (found < 0)
    return damaged();
  if (found == 4 && start[3] <= std::byte(8)) {
    int64_t more = readFully(file, std::span(start).subspan(4, 4 * size_t(start[3])));
    if (more < 0)
      return damaged();
    found += more;
  }
  auto header = parseHeader(path, std::span(start).first(size_t(found)));
  if (!header)
    return header.status();
  if (header->dataBytes / maxInflation > compressedBytes)
    return wrongSize(path, *header, fmt::format("only {} compressed bytes", compressedBytes));
  auto values = allocate(path, header->dataBytes);
  if (!values)
    return values.status();
  int64_t read = readFully(file, **values);
  if (read < 0)
    return damaged();
  std::byte extra;
  int64_t rest = read == header->dataBytes ? readFully(file, {&extra, 1}) : 0;
  if (rest < 0)
    return damaged();
  if (read != header->dataBytes || rest != 0)
    return wrongSize(path, *header, rest ? "more" : fmt::format("{} bytes", read));
  return finish(std::move(*header), std::move(*values));
}

static Result<Tensor> openCompressed(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return Status::error(ErrorKind::badInput, "{}: cannot be opened: {}", path, std::strerror(errno));
  gzFile file = gzopen(path.c_str(), "rbe");
  if (!file)
    return Status::error(ErrorKind::badInput, "{}: cannot be opened: {}", path, std::strerror(errno));
  Result<Tensor> tensor = readCompressed(path, file, info.st_size);
  int closed = gzclose_r(file);
  if (tensor && closed != Z_OK)
    return Status::error(ErrorKind::badInput, "{}: truncated gzip data", path);
  return tensor;
}

Result<Tensor> openIdx(const std::string &path) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  std::span<const std::byte> bytes = (*file)->bytes();
  if (bytes.size() >= 2 && bytes[0] == std::byte(0x1f) && bytes[1] == std::byte(0x8b))
    return openCompressed(path);
  auto header = parseHeader(path, bytes);
  if (!header)
    return header.status();
  std::span<const std::byte> values = bytes.subspan(header->headerBytes);
  if (int64_t(values.size()) != header->dataBytes)
    return wrongSize(path, *header, fmt::format("{} bytes", values.size()));
  if (sizeOf(header->tensor.type) == 1) {
    header->tensor.data = values.data();
    header->tensor.owner = *file;
    return std::move(header->tensor);
  }
  auto copy = allocate(path, header->dataBytes);
  if (!copy)
    return copy.status();
  std::copy(values.begin(), values.end(), (*copy)->begin());
  return finish(std::move(*header), std::move(*copy));
}

} // namespace dg::data
