// SPDX-License-Identifier: Apache-2.0
// Folders of class folders with images, and single image files.
#pragma once

#include "runtime/data/decode/Image.h"
#include "runtime/data/source/Argument.h"
#include "runtime/data/source/SampleSet.h"

#include <memory>

namespace dg::data {

/// What the user asked of images.
struct ImageOptions {
  bool convertsSize = false; ///< `:resize`
  int64_t channels = 0;      ///< 3 `:rgb`, 1 `:gray`, 0: as they are
};

/// What an image must become for an argument, and the shape of its samples. Fails, with `source`, if the argument is no
/// image (height x width, or with 1 or 3 channels first or last), or of other channels than were asked for.
struct ImageForm {
  ImageRequest request;
  std::vector<int64_t> shape;
  static Result<ImageForm> make(const std::string &source, const Argument &argument, const ImageOptions &options);
};

/// Whether a file's name ends as that of an image does.
bool isImageName(std::string_view name);

/// Each folder in `path` is a class, and each image in it a sample; classes and images are ordered by the bytes of
/// their names. Hidden files are passed over, other files too, and counted. Samples are the images, or the numbers of
/// their classes. Fails with badInput if there is no class, or one without an image.
Result<std::shared_ptr<const SampleSet>> openImageFolder(const std::string &path, const ImageForm &form);
Result<std::shared_ptr<const SampleSet>> openClassFolder(const std::string &path);

/// One image, one sample.
Result<std::shared_ptr<const SampleSet>> openImageFile(const std::string &path, const ImageForm &form);

} // namespace dg::data
