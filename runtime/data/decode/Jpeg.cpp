// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo. The exact integer transform (JDCT_ISLOW) and full upsampling: the same bytes on every
// machine, whatever vector instructions it has. Any warning but one is damage: a grey half of an image is not data.
#include "runtime/data/decode/Image.h"

#if DG_HAS_JPEG
#include <csetjmp>
#include <cstdio> // jpeglib.h needs FILE
#include <jpeglib.h>

#include <jerror.h>
#endif

namespace dg::data {

#if DG_HAS_JPEG

namespace {

/// How libjpeg reports, without ending the process.
struct Failure {
  jpeg_error_mgr manager; // first: libjpeg hands out a pointer to it
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto *failure = reinterpret_cast<Failure *>(info->err);
  info->err->format_message(info, failure->text);
  std::longjmp(failure->back, 1);
}

void warn(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA)
    fail(info);
}

void stayQuiet(j_common_ptr) {}

/// A progressive file may hold any number of scans over the whole image, each of a few bytes.
void countScans(j_common_ptr info) {
  constexpr int mostScans = 100;
  auto *decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= mostScans)
    return;
  ERREXIT(decoder, JERR_BAD_PROGRESSION);
}

enum class Outcome { done, damaged, refused };

/// Holds nothing that has a destructor: libjpeg leaves it by longjmp.
Outcome decode(jpeg_decompress_struct &decoder, Failure &failure, const unsigned char *bytes, size_t size,
               ImageTarget &target) {
  if (setjmp(failure.back))
    return Outcome::damaged;
  jpeg_create_decompress(&decoder);
  jpeg_progress_mgr progress{};
  progress.progress_monitor = countScans;
  decoder.progress = &progress;
  jpeg_mem_src(&decoder, bytes, size);
  jpeg_read_header(&decoder, TRUE);
  const J_COLOR_SPACE space = decoder.jpeg_color_space;
  if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
    ERREXIT(&decoder, JERR_CONVERSION_NOTIMPL);
  const bool isGrey = space == JCS_GRAYSCALE || target.wantsGrey();
  decoder.out_color_space = isGrey ? JCS_GRAYSCALE : JCS_RGB;
  decoder.dct_method = JDCT_ISLOW;
  std::byte *row = target.accept({decoder.image_height, decoder.image_width, isGrey ? 1 : 3});
  if (!row)
    return Outcome::refused;
  jpeg_start_decompress(&decoder);
  while (decoder.output_scanline < decoder.output_height) {
    auto *line = reinterpret_cast<JSAMPROW>(row);
    jpeg_read_scanlines(&decoder, &line, 1);
    row += size_t(decoder.output_width) * size_t(decoder.output_components);
  }
  jpeg_finish_decompress(&decoder);
  return Outcome::done;
}

} // namespace

Status decodeJpeg(std::span<const std::byte> bytes, ImageTarget &target) {
  Failure failure{};
  jpeg_decompress_struct decoder{};
  decoder.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = fail;
  failure.manager.emit_message = warn;
  failure.manager.output_message = stayQuiet;
  const Outcome outcome =
      decode(decoder, failure, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), target);
  jpeg_destroy_decompress(&decoder);
  if (outcome == Outcome::damaged)
    return Status::error(ErrorKind::badInput, "damaged JPEG image: {}", failure.text);
  return Status::ok();
}

#else

Status decodeJpeg(std::span<const std::byte>, ImageTarget &) {
  return Status::error(ErrorKind::usage,
                       "JPEG was left out of this build; install libjpeg62-turbo-dev and build again");
}

#endif

} // namespace dg::data
