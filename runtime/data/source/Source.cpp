// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/Source.h"

#include "runtime/data/format/TensorFiles.h"
#include "runtime/data/source/FileList.h"
#include "runtime/data/source/TarSets.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unistd.h>

namespace dg::data {

/// Formats of which a suffix can name a part.
static constexpr const char *archives[] = {".safetensors", ".npz", ".u16", ".u32", ".tar", ".csv", ".tsv", ".parquet"};

/// Cuts `suffix` off the end of `text`.
static bool takeSuffix(std::string &text, std::string_view suffix) {
  if (!text.ends_with(suffix))
    return false;
  text.resize(text.size() - suffix.size());
  return true;
}

/// Takes the conversions off the end, of which each may stand once.
static void takeConversions(Source &source) {
  for (bool isMore = true; isMore;) {
    isMore = false;
    for (auto [suffix, arrangement] :
         {std::pair(":nhwc", Arrangement::channelsLast), {":reshape", Arrangement::reshape}})
      if (source.arrangement == Arrangement::same && takeSuffix(source.path, suffix))
        source.arrangement = arrangement, isMore = true;
    if (!source.images.convertsSize && takeSuffix(source.path, ":resize"))
      source.images.convertsSize = isMore = true;
    for (auto [suffix, channels] : {std::pair(":rgb", 3), {":gray", 1}})
      if (source.images.channels == 0 && takeSuffix(source.path, suffix))
        source.images.channels = channels, isMore = true;
    if (!source.wantsClass && takeSuffix(source.path, ":class"))
      source.wantsClass = isMore = true;
  }
}

static Source parseSource(const std::string &text) {
  Source source;
  source.text = source.path = text;
  takeConversions(source);
  for (const std::string extension : archives) {
    size_t at = source.path.ends_with(extension) ? std::string::npos : source.path.rfind(extension + ":");
    if (at == std::string::npos)
      continue;
    source.member = source.path.substr(at + extension.size() + 1);
    source.path.resize(at + extension.size());
    break;
  }
  return source;
}

/// Gives the suffix of the last one to all, where only that has one.
static Status shareSuffix(const std::string &list, std::vector<Source> &sources) {
  auto hasSuffix = [](const Source &source) { return source.text != source.path; };
  auto bare = std::find_if_not(sources.begin(), sources.end(), hasSuffix);
  auto suffixed = std::find_if(sources.begin(), sources.end(), hasSuffix);
  if (bare == sources.end() || suffixed == sources.end())
    return Status::ok();
  if (suffixed + 1 != sources.end())
    return Status::error(ErrorKind::usage,
                         "'{}': '{}' has a suffix and '{}' has none; write it on each file, or once at the end for the "
                         "whole list",
                         list, suffixed->text, bare->text);
  const std::string suffix = suffixed->text.substr(suffixed->path.size());
  for (Source &source : sources) {
    Source whole = parseSource(source.path + suffix);
    if (whole.path != source.path)
      return Status::error(ErrorKind::usage, "'{}': the '{}' at the end is of the whole list, but '{}' cannot have it",
                           list, suffix, source.path);
    source = std::move(whole);
  }
  return Status::ok();
}

/// The files that one element of a list stands for.
static Status expand(const Source &source, std::vector<Source> &files) {
  auto names = expandBraces(source.path);
  if (!names)
    return names.status();
  const std::string suffix = source.text.substr(source.path.size());
  for (const std::string &name : *names) {
    auto paths = expandGlob(name);
    if (!paths)
      return paths.status();
    for (std::string &path : *paths) {
      Source file = source;
      file.text = path + suffix;
      file.path = std::move(path);
      files.push_back(std::move(file));
    }
  }
  return Status::ok();
}

Result<std::vector<Source>> parseSources(const std::string &list) {
  std::vector<Source> sources;
  for (const std::string &part : splitList(list)) // `--input x=@x.npy` marks a file with @; data may be written so too
    sources.push_back(parseSource(part.starts_with('@') ? part.substr(1) : part));
  DG_RETURN_IF_ERROR(shareSuffix(list, sources));
  std::vector<Source> files;
  for (const Source &source : sources)
    DG_RETURN_IF_ERROR(expand(source, files));
  return files;
}

static bool startsWith(const std::string &path, std::string_view magic) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  std::array<char, 8> start{};
  return file && std::fread(start.data(), 1, magic.size(), file.get()) == magic.size() &&
         std::string_view(start.data(), magic.size()) == magic;
}

/// "-": a file of any format but tokens, whole, on stdin.
static Result<Tensor> openStandardInput(const Source &source) {
  auto refuse = [](const char *what) {
    return Status::error(ErrorKind::usage, "-: {}; pipe a .npy, .npz or IDX file into dgrun, for one argument", what);
  };
  if (::isatty(STDIN_FILENO))
    return refuse("stdin is a terminal");
  auto bytes = std::make_shared<std::vector<std::byte>>();
  constexpr size_t piece = 1 << 20;
  for (size_t got = piece; got > 0; bytes->resize(bytes->size() - piece + got)) {
    bytes->resize(bytes->size() + piece);
    got = std::fread(bytes->data() + bytes->size() - piece, 1, piece, stdin);
  }
  if (bytes->empty())
    return refuse("stdin holds nothing, or was read before");
  std::string_view text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  if (text.starts_with("PK\x03\x04"))
    return readNpz("stdin", *bytes, bytes, source.member);
  return text.starts_with("\x93NUMPY") ? readNpy("stdin", *bytes, bytes) : readIdx("stdin", *bytes, bytes);
}

static Result<Tensor> openTokenFile(const Source &source, DType type, const std::vector<int64_t> &sampleShape) {
  if ((!source.member.empty() && source.member != "+1") || source.arrangement != Arrangement::same)
    return Status::error(ErrorKind::usage, "'{}': after a token file only :+1 (the tokens that follow) is known",
                         source.text);
  auto tokens = openTokens(source.path, type, bytesOf(sampleShape, 1).value_or(-1), source.member.empty() ? 0 : 1);
  if (tokens) {
    tokens->shape.resize(1);
    tokens->shape.insert(tokens->shape.end(), sampleShape.begin(), sampleShape.end());
  }
  return tokens;
}

/// A file that is one tensor.
static Result<Tensor> openTensor(const Source &source, const Argument &argument) {
  const std::string &path = source.path;
  if (path == "-")
    return openStandardInput(source);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path, source.member.empty() ? argument.name : source.member);
  if (path.ends_with(".u16"))
    return openTokenFile(source, DType::u16, argument.sampleShape);
  if (path.ends_with(".u32"))
    return openTokenFile(source, DType::u32, argument.sampleShape);
  if (path.ends_with(".csv") || path.ends_with(".tsv"))
    return openCsv(path, source.member, argument.dtype);
  if (path.ends_with(".npz") || startsWith(path, "PK\x03\x04"))
    return openNpz(path, source.member);
  if (path.ends_with(".npy") || startsWith(path, "\x93NUMPY"))
    return openNpy(path);
  if (size_t at = path.rfind(".npy:"); at != std::string::npos)
    return Status::error(ErrorKind::usage, "'{}': after a .npy file only :nhwc and :reshape are known", source.text);
  return openIdx(path);
}

/// Suffixes that mean nothing for what they stand behind.
static Status checkSuffixes(const Source &source, bool isImages, bool isFolder) {
  const bool converts = source.images.convertsSize || source.images.channels != 0;
  if (converts && (!isImages || source.wantsClass))
    return Status::error(ErrorKind::usage, "'{}': :resize, :rgb and :gray convert images, and these are none",
                         source.text);
  if (source.wantsClass && !isFolder)
    return Status::error(ErrorKind::usage, "'{}': :class is of a folder of class folders", source.text);
  if ((isImages || source.wantsClass) && source.arrangement != Arrangement::same)
    return Status::error(ErrorKind::usage,
                         "'{}': images are arranged as the argument is; :nhwc and :reshape are for tensors",
                         source.text);
  return Status::ok();
}

Result<std::shared_ptr<const SampleSet>> openSource(const Source &source, const Argument &argument) {
  const std::string &path = source.path;
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(path, ignored), isTar = path.ends_with(".tar");
  const bool isImage = !isFolder && isImageName(path);
  const bool isImagePart = isTar && isImageName("." + source.member);
  DG_RETURN_IF_ERROR(checkSuffixes(source, isFolder || isImage || isImagePart, isFolder));
  if (isTar)
    return openTarSamples(path, source.text, source.member, argument, source.images);
  if (path.ends_with(".parquet"))
    return Status::error(ErrorKind::usage,
                         "'{}': Parquet is left out of dgrun, because Arrow's reader can be called from C++ of its own "
                         "compiler only; write the column once: python3 -c \"import numpy, pyarrow.parquet as p; "
                         "numpy.save('x.npy', p.read_table('FILE', columns=['COLUMN'])['COLUMN'].to_numpy())\"",
                         source.text);
  if (isFolder && source.wantsClass)
    return openClassFolder(path);
  if (isFolder || isImage) {
    auto form = ImageForm::make(source.text, argument, source.images);
    if (!form)
      return form.status();
    return isFolder ? openImageFolder(path, *form) : openImageFile(path, *form);
  }
  auto tensor = openTensor(source, argument);
  if (!tensor)
    return tensor.status();
  if (tensor->shape.empty() && !argument.isWhole)
    return Status::error(ErrorKind::badInput, "{}: found a scalar, expected samples of shape {} for argument '{}'",
                         source.text, describeShape(argument.sampleShape), argument.name);
  return std::shared_ptr<const SampleSet>(
      std::make_shared<TensorSet>(source.text, std::move(*tensor), argument.isWhole));
}

} // namespace dg::data
