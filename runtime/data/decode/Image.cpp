// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/decode/Image.h"

#include <algorithm>
#include <new>

namespace dg::data {

namespace {

/// Where the pixels of one image go: in place if the shapes agree, else into scratch memory.
class Target final : public ImageTarget {
public:
  Target(size_t fileBytes, const ImageRequest &request, std::span<std::byte> to, std::vector<std::byte> &scratch)
      : request(request), fileBytes(int64_t(fileBytes)), to(to), scratch(scratch) {}

  std::byte *accept(const ImageShape &shape) override;
  bool wantsGrey() const override { return request.convertsChannels && request.shape.channels == 1; }
  /// Converts what accept had room made for.
  void finish();
  Status status = Status::ok();

private:
  const ImageRequest &request;
  int64_t fileBytes;
  std::span<std::byte> to;
  std::vector<std::byte> &scratch;
  ImageShape found;
};

} // namespace

static std::string describe(const ImageShape &shape) {
  return fmt::format("{} x {} pixels (height x width) of {} channel{}", shape.height, shape.width, shape.channels,
                     shape.channels == 1 ? "" : "s");
}

std::byte *Target::accept(const ImageShape &shape) {
  found = shape;
  const ImageShape &wanted = request.shape;
  const bool isSameSize = shape.height == wanted.height && shape.width == wanted.width;
  const bool isSameChannels = shape.channels == wanted.channels;
  if ((!isSameSize && !request.convertsSize) || (!isSameChannels && !request.convertsChannels)) {
    std::string advice;
    if (!isSameSize && !request.convertsSize)
      advice = ":resize scales each image";
    if (!isSameChannels && !request.convertsChannels)
      advice +=
          fmt::format("{}:{} converts the channels", advice.empty() ? "" : ", ", wanted.channels == 1 ? "gray" : "rgb");
    status = Status::error(ErrorKind::badInput, "found {}, expected {}; {}", describe(shape), describe(wanted), advice);
    return nullptr;
  }
  if (isSameSize && isSameChannels)
    return to.data();
  // Neither format packs more than about a thousand pixels into a byte, and no camera makes more of them.
  constexpr int64_t mostPixels = int64_t(1) << 27, freePixels = 1 << 16, mostPixelsOfByte = 1032;
  const int64_t pixels = shape.height * shape.width; // both below 2^31
  if (pixels < 1 || pixels > mostPixels || pixels > freePixels + mostPixelsOfByte * fileBytes) {
    status =
        Status::error(ErrorKind::badInput, "claims {} in {} bytes, which is not decoded", describe(shape), fileBytes);
    return nullptr;
  }
  const int64_t converted = pixels * std::max(shape.channels, wanted.channels);
  try {
    if (int64_t(scratch.size()) < converted)
      scratch.resize(size_t(converted));
  } catch (const std::bad_alloc &) {
    status = Status::error(ErrorKind::runFailed, "no memory for {}", describe(shape));
    return nullptr;
  }
  return scratch.data();
}

/// From any of 1 to 4 channels to 1 or 3; transparency is dropped. `to` may be `from` where pixels do not grow.
static void convertChannels(const std::byte *from, int64_t fromChannels, std::byte *to, int64_t toChannels,
                            int64_t pixels) {
  auto convert = [&](int64_t pixel) {
    const std::byte *in = from + pixel * fromChannels;
    std::byte *out = to + pixel * toChannels;
    const bool isGrey = fromChannels < 3;
    if (toChannels == 1 && !isGrey) { // the luma of JPEG
      const uint32_t red = uint32_t(in[0]), green = uint32_t(in[1]), blue = uint32_t(in[2]);
      out[0] = std::byte((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
    } else if (toChannels == 1) {
      out[0] = in[0];
    } else {
      const std::byte rgb[] = {in[0], in[isGrey ? 0 : 1], in[isGrey ? 0 : 2]};
      std::copy(rgb, rgb + 3, out);
    }
  };
  if (toChannels > fromChannels)
    for (int64_t pixel = pixels; pixel-- > 0;)
      convert(pixel);
  else
    for (int64_t pixel = 0; pixel < pixels; ++pixel)
      convert(pixel);
}

void Target::finish() {
  const ImageShape &wanted = request.shape;
  if (found == wanted)
    return;
  const int64_t pixels = found.height * found.width;
  if (found.channels != wanted.channels)
    convertChannels(scratch.data(), found.channels, scratch.data(), wanted.channels, pixels);
  found.channels = wanted.channels;
  const std::span<const std::byte> image = std::span(scratch).first(size_t(found.bytes()));
  if (found == wanted)
    std::copy(image.begin(), image.end(), to.begin());
  else
    resizeImage(image, found, to, wanted);
}

Status decodeImage(std::span<const std::byte> bytes, const ImageRequest &request, std::span<std::byte> to,
                   std::vector<std::byte> &scratch) {
  Target target(bytes.size(), request, to, scratch);
  auto startsWith = [&](std::initializer_list<unsigned> magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin(),
                                                      [](unsigned a, std::byte b) { return std::byte(a) == b; });
  };
  const bool isJpeg = startsWith({0xff, 0xd8, 0xff});
  if (!isJpeg && !startsWith({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}))
    return Status::error(ErrorKind::badInput, "not an image that is known: its {} bytes begin as neither JPEG nor PNG",
                         bytes.size());
  Status decoded = isJpeg ? decodeJpeg(bytes, target) : decodePng(bytes, target);
  if (!target.status)
    return target.status;
  if (decoded)
    target.finish();
  return decoded;
}

} // namespace dg::data
