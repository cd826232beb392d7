// SPDX-License-Identifier: Apache-2.0
// The archive is walked once, when it is opened, for the place of each sample; names are looked up again only for a
// message, so that a set of millions of samples needs 16 bytes for each.
#include "runtime/data/source/TarSets.h"

#include "runtime/data/format/NumberText.h"
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TarFile.h"
#include "runtime/data/format/TensorFiles.h"
#include "runtime/support/Json.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace dg::data {

namespace {

using Bytes = std::span<const std::byte>;

struct Archive {
  std::shared_ptr<const package::MappedFile> file;
  std::vector<Bytes> samples;
};

class TarSet : public SampleSet {
public:
  TarSet(const std::string &source, DType type, std::vector<int64_t> shape, Archive archive)
      : SampleSet(source, type, std::move(shape), int64_t(archive.samples.size())), archive(std::move(archive)) {}
  std::string nameOf(int64_t index) const override;

protected:
  Bytes at(int64_t index) const { return archive.samples[size_t(index)]; }
  /// A failure that names no sample, as this one's.
  Status of(int64_t index, const Status &status) const {
    return Status::error(status.kind(), "{}: {}", nameOf(index), status.message());
  }
  Archive archive;
};

class TarImages final : public TarSet {
public:
  TarImages(const std::string &source, const ImageForm &form, Archive archive)
      : TarSet(source, DType::u8, form.shape, std::move(archive)), request(form.request) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override {
    scratch.sample.resize(size_t(request.shape.bytes()));
    if (Status status = decodeImage(at(index), request, scratch.sample, scratch.image); !status)
      return of(index, status);
    return scratch.sample.data();
  }
  bool isImages() const override { return true; }

private:
  ImageRequest request;
};

class TarArrays final : public TarSet {
public:
  TarArrays(const std::string &source, const Tensor &first, Archive archive)
      : TarSet(source, first.type, first.shape, std::move(archive)) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override {
    auto tensor = readNpy("its array", at(index), archive.file);
    if (!tensor)
      return of(index, tensor.status());
    if (tensor->type != type || tensor->shape != sampleShape)
      return of(index, Status::error(ErrorKind::badInput, "found {} of {}, expected {} of {} as in the first sample",
                                     describeShape(tensor->shape), plan::nameOf(tensor->type),
                                     describeShape(sampleShape), plan::nameOf(type)));
    if (tensor->owner == archive.file)
      return tensor->data;
    const Bytes copied(tensor->data, size_t(bytesOf(tensor->shape, sizeOf(type)).value_or(0)));
    scratch.sample.assign(copied.begin(), copied.end());
    return scratch.sample.data();
  }
};

/// Numbers as text: as many words as the argument's sample has elements.
class TarTexts final : public TarSet {
public:
  TarTexts(const std::string &source, DType type, std::vector<int64_t> shape, Archive archive)
      : TarSet(source, type, std::move(shape), std::move(archive)), elements(bytesOf(sampleShape, 1).value_or(0)) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override {
    const size_t elementBytes = size_t(sizeOf(type));
    scratch.sample.resize(size_t(elements) * elementBytes);
    std::string_view rest(reinterpret_cast<const char *>(at(index).data()), at(index).size());
    int64_t count = 0;
    for (std::string_view word = takeWord(rest); !word.empty(); word = takeWord(rest), ++count)
      if (count < elements && !readNumber(word, type, scratch.sample.data() + size_t(count) * elementBytes))
        return of(index, Status::error(ErrorKind::badInput, "found {}, expected {}", quoteShort(word),
                                       type == DType::i64 ? "a whole number" : "a finite number"));
    if (count != elements)
      return of(index, Status::error(ErrorKind::badInput, "found {} numbers, expected {}", count, elements));
    return scratch.sample.data();
  }

private:
  int64_t elements;
};

/// A field of a JSON object: a number, true or false, or lists of them.
class TarFields final : public TarSet {
public:
  TarFields(const std::string &source, std::string field, DType type, std::vector<int64_t> shape, Archive archive)
      : TarSet(source, type, std::move(shape), std::move(archive)), field(std::move(field)),
        elements(bytesOf(sampleShape, 1).value_or(0)) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override {
    if (Status status = readField(at(index), scratch.sample); !status)
      return of(index, status);
    return scratch.sample.data();
  }

private:
  Status readField(Bytes bytes, std::vector<std::byte> &to) const;
  bool append(const nlohmann::json &value, std::vector<std::byte> &to) const;
  std::string field;
  int64_t elements;
};

} // namespace

/// "a/0017.left.png" → "a/0017" and "left.png".
static std::pair<std::string_view, std::string_view> cutName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  return dot == std::string_view::npos ? std::pair(name, std::string_view())
                                       : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

std::string TarSet::nameOf(int64_t index) const {
  std::string name;
  (void)readTar(source, archive.file->bytes(), [&](const TarMember &member) {
    // An empty member has the place of the one that follows it, and is none of a column that can be read.
    const bool isIt = member.bytes.data() == at(index).data() && member.bytes.size() == at(index).size();
    name = isIt ? std::string(member.name) : name;
    return isIt ? Status::error(ErrorKind::badInput, "found") : Status::ok();
  });
  return fmt::format("{}: sample {} ({})", source, index, name);
}

bool TarFields::append(const nlohmann::json &value, std::vector<std::byte> &to) const {
  if (value.is_array())
    return std::all_of(value.begin(), value.end(), [&](const auto &each) { return append(each, to); });
  std::byte element[8];
  const std::string text = value.is_boolean() ? (value.get<bool>() ? "1" : "0") : value.is_number() ? value.dump() : "";
  if (!readNumber(text, type, element))
    return false;
  to.insert(to.end(), element, element + sizeOf(type));
  return true;
}

Status TarFields::readField(Bytes bytes, std::vector<std::byte> &to) const {
  constexpr size_t mostBytes = size_t(16) << 20;
  if (bytes.size() > mostBytes)
    return Status::error(ErrorKind::badInput, "has {} bytes, at most {} are read of such a file", bytes.size(),
                         mostBytes);
  auto document = parseJson({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, "its text");
  if (!document)
    return document.status();
  const nlohmann::json *value = &*document;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find('.', begin), field.size());
    const std::string name = field.substr(begin, end - begin);
    if (!value->is_object() || !value->contains(name))
      return Status::error(ErrorKind::badInput, "has no field {} for {}", quoteShort(name), quoteShort(field));
    value = &value->at(name);
    begin = end + 1;
  }
  to.clear();
  if (!append(*value, to))
    return Status::error(ErrorKind::badInput, "field {} is not of {} only", quoteShort(field),
                         type == DType::i64 ? "whole numbers" : "numbers");
  if (const size_t count = to.size() / size_t(sizeOf(type)); int64_t(count) != elements)
    return Status::error(ErrorKind::badInput, "field {}: found {} numbers, expected {}", quoteShort(field), count,
                         elements);
  return Status::ok();
}

/// Walks the archive for the part `extension` of each sample.
static Result<Archive> findSamples(const std::string &path, const std::string &source, std::string_view extension) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  Archive archive{*file, {}};
  std::string key;
  std::vector<std::string> parts; // of the sample that is being read, for a message
  bool isFirst = true, isFound = false;
  auto close = [&]() -> Status {
    if (isFirst || isFound)
      return Status::ok();
    return Status::error(ErrorKind::badInput, "{}: sample {} ({}) has no .{}; it has .{}", source,
                         archive.samples.size(), key, extension, fmt::join(parts, ", ."));
  };
  auto isEqual = [&](std::string_view part) {
    return std::equal(part.begin(), part.end(), extension.begin(), extension.end(), [](char a, char b) {
      auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
      return lower(a) == lower(b);
    });
  };
  try {
    DG_RETURN_IF_ERROR(readTar(source, (*file)->bytes(), [&](const TarMember &member) {
      auto [name, part] = cutName(member.name);
      if (part.empty() || name.ends_with('/') || name.empty())
        return Status::ok(); // a file without an extension, or a hidden one, is no part of a sample
      if (isFirst || name != key) {
        DG_RETURN_IF_ERROR(close());
        key = name;
        parts.clear();
        isFirst = isFound = false;
      }
      constexpr size_t mostParts = 64;
      if (parts.size() < mostParts)
        parts.emplace_back(part);
      if (!isEqual(part))
        return Status::ok();
      if (isFound)
        return Status::error(ErrorKind::badInput, "{}: sample {} ({}) has two .{}", source, archive.samples.size() - 1,
                             key, extension);
      isFound = true;
      archive.samples.push_back(member.bytes);
      return Status::ok();
    }));
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for the places of {} samples", source,
                         archive.samples.size());
  }
  DG_RETURN_IF_ERROR(close());
  if (archive.samples.empty())
    return Status::error(ErrorKind::badInput, "{}: the archive holds no samples (files with names such as 0001.{})",
                         source, extension);
  return archive;
}

Result<std::shared_ptr<const SampleSet>> openTarSamples(const std::string &path, const std::string &source,
                                                        const std::string &member, const Argument &argument,
                                                        const ImageOptions &options) {
  using Made = std::shared_ptr<const SampleSet>;
  const size_t colon = member.find(':');
  const std::string extension = member.substr(0, colon);
  const std::string field = colon == std::string::npos ? "" : member.substr(colon + 1);
  const std::string kind = extension.substr(extension.rfind('.') + 1);
  const bool isImage = isImageName("." + kind);
  const bool isText = kind == "cls" || kind == "txt";
  if ((!isImage && !isText && kind != "npy" && kind != "json") || field.empty() == (kind == "json"))
    return Status::error(ErrorKind::usage,
                         "'{}': say which part of a sample: {}:npy, :cls, :txt, :jpg, :jpeg, :png or :json:FIELD",
                         source, path);
  if (argument.isWhole)
    return Status::error(ErrorKind::usage,
                         "'{}': the job was compiled without --batch, and takes no samples of an archive", source);
  const DType textual = textType(argument.dtype);
  auto form = isImage ? ImageForm::make(source, argument, options) : Result<ImageForm>(ImageForm());
  if (!form)
    return form.status();
  auto archive = findSamples(path, source, extension);
  if (!archive)
    return archive.status();
  if (isImage)
    return Made(std::make_shared<TarImages>(source, *form, std::move(*archive)));
  if (isText)
    return Made(std::make_shared<TarTexts>(source, textual, argument.sampleShape, std::move(*archive)));
  if (kind == "json")
    return Made(std::make_shared<TarFields>(source, field, textual, argument.sampleShape, std::move(*archive)));
  auto first = readNpy(source + ": the first sample", archive->samples.front(), archive->file);
  if (!first)
    return first.status();
  return Made(std::make_shared<TarArrays>(source, *first, std::move(*archive)));
}

} // namespace dg::data
