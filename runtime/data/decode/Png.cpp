// SPDX-License-Identifier: Apache-2.0
// PNG by libpng: 8 bits a channel; palettes and fewer bits become that without loss, 16 bits are refused.
#include "runtime/data/decode/Image.h"

#if DG_HAS_PNG
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>
#endif

namespace dg::data {

#if DG_HAS_PNG

namespace {

/// What libpng reads from, where it writes, and how it fails. Nothing here has a destructor that a longjmp would skip.
struct Reader {
  std::span<const std::byte> rest;
  std::jmp_buf back;
  char text[120] = {};
};

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  auto *reader = static_cast<Reader *>(png_get_error_ptr(png));
  std::strncpy(reader->text, text, sizeof reader->text - 1);
  std::longjmp(reader->back, 1);
}

void warn(png_structp, png_const_charp) {} // of chunks that carry no pixels

void take(png_structp png, png_bytep to, size_t count) {
  auto *reader = static_cast<Reader *>(png_get_io_ptr(png));
  if (count > reader->rest.size())
    png_error(png, "it ends too early");
  std::memcpy(to, reader->rest.data(), count);
  reader->rest = reader->rest.subspan(count);
}

enum class Outcome { done, damaged, refused };

Outcome decode(png_structp png, png_infop info, Reader &reader, ImageTarget &target) {
  if (setjmp(reader.back))
    return Outcome::damaged;
  constexpr png_uint_32 mostPixelsOfSide = 1 << 16;
  png_set_user_limits(png, mostPixelsOfSide, mostPixelsOfSide);
  png_set_chunk_cache_max(png, 64);
  png_set_chunk_malloc_max(png, 1 << 20);
  png_set_read_fn(png, &reader, take);
  png_read_info(png, info);
  if (png_get_bit_depth(png, info) == 16)
    png_error(png, "it has 16 bits a channel; 8 are read");
  // Palettes become colours, grey of fewer bits 8, and a colour that is transparent a channel of its own.
  png_set_expand(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const png_uint_32 height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  const size_t channels = png_get_channels(png, info);
  if (png_get_rowbytes(png, info) != size_t(width) * channels)
    png_error(png, "its pixels are of an unknown kind");
  std::byte *first = target.accept({height, width, int64_t(channels)});
  if (!first)
    return Outcome::refused;
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 row = 0; row < height; ++row)
      png_read_row(png, reinterpret_cast<png_bytep>(first + size_t(row) * width * channels), nullptr);
  png_read_end(png, nullptr);
  return Outcome::done;
}

} // namespace

Status decodePng(std::span<const std::byte> bytes, ImageTarget &target) {
  Reader reader{bytes, {}};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, fail, warn);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return Status::error(ErrorKind::runFailed, "no memory for a PNG decoder");
  }
  const Outcome outcome = decode(png, info, reader, target);
  png_destroy_read_struct(&png, &info, nullptr);
  if (outcome == Outcome::damaged)
    return Status::error(ErrorKind::badInput, "damaged PNG image: {}", reader.text);
  return Status::ok();
}

#else

Status decodePng(std::span<const std::byte>, ImageTarget &) {
  return Status::error(ErrorKind::usage, "PNG was left out of this build; install libpng-dev and build again");
}

#endif

} // namespace dg::data
