// SPDX-License-Identifier: Apache-2.0
// Images from outside, JPEG and PNG, as bytes of pixels: rows from the top, the channels of a pixel together. Every
// decoder is bounded before it begins: by the size that is wanted, or by what so few bytes can honestly hold.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dg::data {

struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  bool operator==(const ImageShape &) const = default;
  int64_t bytes() const { return height * width * channels; }
};

/// What an image is to become. Nothing is converted that was not asked for.
struct ImageRequest {
  ImageShape shape;              ///< 1 or 3 channels
  bool convertsSize = false;     ///< `:resize`
  bool convertsChannels = false; ///< `:rgb`, `:gray`
};

/// Decodes into `to`, of request.shape.bytes(). `scratch` is for an image of another size; it grows to what that needs.
/// Fails with badInput, or with usage where the decoder was left out of the build; the message names no file.
Status decodeImage(std::span<const std::byte> bytes, const ImageRequest &request, std::span<std::byte> to,
                   std::vector<std::byte> &scratch);

/// The decoders of each format. They ask `accept` for the room once the header is read, with the shape that was found
/// (2 or 4 channels: with transparency), and write those pixels there; null ends with the status that accept has left.
class ImageTarget {
public:
  virtual ~ImageTarget() = default;
  virtual std::byte *accept(const ImageShape &found) = 0;
  /// Whether a colour image may be decoded as grey at once.
  virtual bool wantsGrey() const = 0;
};
Status decodeJpeg(std::span<const std::byte> bytes, ImageTarget &target);
Status decodePng(std::span<const std::byte> bytes, ImageTarget &target);

/// Scales with a triangle as wide as a pixel of the smaller image (what Pillow calls bilinear), in integers, so that
/// every machine computes the same bytes.
void resizeImage(std::span<const std::byte> from, const ImageShape &fromShape, std::span<std::byte> to,
                 const ImageShape &toShape);

} // namespace dg::data
