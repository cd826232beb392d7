// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/Source.h"

#include "runtime/data/format/TensorFiles.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <unistd.h>

namespace dg::data {

/// Formats of which a suffix can name a part.
static constexpr const char *archives[] = {".safetensors", ".npz", ".u16", ".u32"};

/// Cuts `suffix` off the end of `text`.
static bool takeSuffix(std::string &text, std::string_view suffix) {
  if (!text.ends_with(suffix))
    return false;
  text.resize(text.size() - suffix.size());
  return true;
}

static Source parseSource(const std::string &text) {
  Source source;
  source.text = source.path = text;
  if (takeSuffix(source.path, ":nhwc"))
    source.arrangement = Arrangement::channelsLast;
  else if (takeSuffix(source.path, ":reshape"))
    source.arrangement = Arrangement::reshape;
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

Result<std::vector<Source>> parseSources(const std::string &list) {
  std::vector<Source> sources;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    // `--input x=@x.npy` marks a file with @; data sources may be written so too.
    if (begin < end && list[begin] == '@')
      ++begin;
    sources.push_back(parseSource(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  auto hasSuffix = [](const Source &source) { return source.text != source.path; };
  auto bare = std::find_if_not(sources.begin(), sources.end(), hasSuffix);
  auto suffixed = std::find_if(sources.begin(), sources.end(), hasSuffix);
  if (bare == sources.end() || suffixed == sources.end())
    return sources;
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
  return sources;
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

Result<Tensor> openSource(const Source &source, const std::string &argument, const std::vector<int64_t> &sampleShape) {
  const std::string &path = source.path;
  if (path == "-")
    return openStandardInput(source);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path, source.member.empty() ? argument : source.member);
  if (path.ends_with(".u16"))
    return openTokenFile(source, DType::u16, sampleShape);
  if (path.ends_with(".u32"))
    return openTokenFile(source, DType::u32, sampleShape);
  if (path.ends_with(".npz") || startsWith(path, "PK\x03\x04"))
    return openNpz(path, source.member);
  if (path.ends_with(".npy") || startsWith(path, "\x93NUMPY"))
    return openNpy(path);
  if (size_t at = path.rfind(".npy:"); at != std::string::npos)
    return Status::error(ErrorKind::usage, "'{}': after a .npy file only :nhwc and :reshape are known", source.text);
  return openIdx(path);
}

} // namespace dg::data
