// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/ImageSets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace dg::data {

namespace fs = std::filesystem;

Result<ImageForm> ImageForm::make(const std::string &source, const Argument &argument, const ImageOptions &options) {
  std::vector<int64_t> shape = argument.sampleShape;
  const bool isOneOfMany = argument.isWhole && shape.size() == 4 && shape.front() == 1;
  if (isOneOfMany)
    shape.erase(shape.begin());
  auto isChannels = [](int64_t size) { return size == 1 || size == 3; };
  ImageForm form;
  ImageShape &image = form.request.shape;
  if (shape.size() == 2)
    image = {shape[0], shape[1], 1};
  else if (shape.size() == 3 && isChannels(shape[0]))
    image = {shape[1], shape[2], shape[0]};
  else if (shape.size() == 3 && isChannels(shape[2]))
    image = {shape[0], shape[1], shape[2]};
  if (image.bytes() < 1)
    return Status::error(ErrorKind::badInput,
                         "{}: images cannot feed argument '{}' of shape {}; expected channels x height x width, with 1 "
                         "or 3 channels",
                         source, argument.name, describeShape(argument.sampleShape));
  if (options.channels != 0 && options.channels != image.channels)
    return Status::error(ErrorKind::usage, "'{}': :{} gives {} channels, argument '{}' has {}", source,
                         options.channels == 1 ? "gray" : "rgb", options.channels, argument.name, image.channels);
  form.request.convertsSize = options.convertsSize;
  form.request.convertsChannels = options.channels != 0;
  form.shape = {image.height, image.width, image.channels};
  if (isOneOfMany)
    form.shape.insert(form.shape.begin(), 1);
  return form;
}

bool isImageName(std::string_view name) {
  const size_t dot = name.rfind('.');
  std::string extension(name.substr(dot == std::string_view::npos ? name.size() : dot));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : char(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

/// Into scratch.file. Not mapped: a set has more files than a process may have mappings.
static Result<std::span<const std::byte>> readFile(const std::string &path, Scratch &scratch) {
  constexpr int64_t mostBytes = int64_t(1) << 28;
  auto failed = [&](const std::string &why) {
    return Status::error(ErrorKind::badInput, "{}: cannot be read: {}", path, why);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe with that name must not block
  if (file < 0)
    return failed(std::strerror(errno));
  struct stat status{};
  Status result = Status::ok();
  size_t size = 0, done = 0;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    result = failed("it is no regular file");
  else if (status.st_size > mostBytes)
    result = failed(fmt::format("it has {} bytes, at most {} are read of an image", status.st_size, mostBytes));
  else
    size = size_t(status.st_size);
  if (result && scratch.file.size() < size)
    scratch.file.resize(size);
  while (result && done < size) {
    const ssize_t count = ::read(file, scratch.file.data() + done, size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      result = failed(count < 0 ? std::strerror(errno) : "it has become shorter");
    else
      done += size_t(count);
  }
  ::close(file);
  if (!result)
    return result;
  return std::span<const std::byte>(scratch.file).first(size);
}

namespace {

/// The files of a folder of class folders. Names are kept in one string: a set may have a million.
class ImageFiles {
public:
  static Result<std::shared_ptr<const ImageFiles>> list(const std::string &path);

  int64_t numFiles() const { return int64_t(ends.size()); }
  size_t classOf(int64_t file) const {
    return size_t(std::upper_bound(firstOf.begin(), firstOf.end(), file) - firstOf.begin()) - 1;
  }
  /// "cat/0017.jpg".
  std::string nameOf(int64_t file) const {
    const size_t begin = file == 0 ? 0 : ends[size_t(file) - 1];
    return classes[classOf(file)] + "/" + names.substr(begin, ends[size_t(file)] - begin);
  }
  std::vector<std::string> classes;
  int64_t numOthers = 0; ///< files that are no images

private:
  Status addClass(const fs::path &folder);
  std::vector<int64_t> firstOf; ///< of each class
  std::vector<size_t> ends;     ///< of each name
  std::string names;
};

class FolderSet : public SampleSet {
public:
  FolderSet(const std::string &path, std::shared_ptr<const ImageFiles> files, DType type, std::vector<int64_t> shape)
      : SampleSet(path, type, std::move(shape), files->numFiles()), files(std::move(files)) {}
  std::string nameOf(int64_t index) const override {
    return fmt::format("{}: sample {} ({})", source, index, files->nameOf(index));
  }

protected:
  std::shared_ptr<const ImageFiles> files;
};

class FolderImages final : public FolderSet {
public:
  FolderImages(const std::string &path, std::shared_ptr<const ImageFiles> files, const ImageForm &form)
      : FolderSet(path, std::move(files), DType::u8, form.shape), request(form.request) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override;
  bool isImages() const override { return true; }
  std::string note() const override {
    return files->numOthers == 0
               ? ""
               : fmt::format("{}: {} files are no .jpg or .png and were left out", source, files->numOthers);
  }

private:
  ImageRequest request;
};

class FolderClasses final : public FolderSet {
public:
  FolderClasses(const std::string &path, std::shared_ptr<const ImageFiles> files)
      : FolderSet(path, std::move(files), DType::i64, {}) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override {
    const int64_t number = int64_t(files->classOf(index));
    scratch.sample.resize(sizeof number);
    std::memcpy(scratch.sample.data(), &number, sizeof number);
    return scratch.sample.data();
  }
  bool isDecoded() const override { return false; }
  std::span<const std::string> classes() const override { return files->classes; }
};

class ImageFile final : public SampleSet {
public:
  ImageFile(const std::string &path, const ImageForm &form)
      : SampleSet(path, DType::u8, form.shape, 1), request(form.request) {}
  Result<const std::byte *> read(int64_t index, Scratch &scratch) const override;
  std::string nameOf(int64_t) const override { return source; }
  bool isImages() const override { return true; }

private:
  ImageRequest request;
};

} // namespace

static Result<const std::byte *> readImage(const std::string &path, const ImageRequest &request, const SampleSet &set,
                                           int64_t index, Scratch &scratch) {
  auto bytes = readFile(path, scratch);
  if (!bytes)
    return bytes.status();
  scratch.sample.resize(size_t(request.shape.bytes()));
  Status status = decodeImage(*bytes, request, scratch.sample, scratch.image);
  if (!status)
    return Status::error(status.kind(), "{}: {}", set.nameOf(index), status.message());
  return scratch.sample.data();
}

Result<const std::byte *> FolderImages::read(int64_t index, Scratch &scratch) const {
  return readImage(source + "/" + files->nameOf(index), request, *this, index, scratch);
}

Result<const std::byte *> ImageFile::read(int64_t index, Scratch &scratch) const {
  return readImage(source, request, *this, index, scratch);
}

Status ImageFiles::addClass(const fs::path &folder) {
  std::vector<std::string> images;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.'))
      continue;
    if (isImageName(name) && !entry.is_directory())
      images.push_back(name);
    else
      ++numOthers;
  }
  if (images.empty())
    return Status::error(ErrorKind::badInput,
                         "{}: the folder of a class holds no .jpg or .png image; add some, or remove the folder",
                         folder.string());
  std::sort(images.begin(), images.end());
  firstOf.push_back(numFiles());
  classes.push_back(folder.filename().string());
  for (const std::string &image : images) {
    names += image;
    ends.push_back(names.size());
  }
  return Status::ok();
}

Result<std::shared_ptr<const ImageFiles>> ImageFiles::list(const std::string &path) {
  auto files = std::make_shared<ImageFiles>();
  try {
    std::vector<fs::path> folders;
    for (const fs::directory_entry &entry : fs::directory_iterator(path)) {
      if (entry.path().filename().string().starts_with('.'))
        continue;
      if (entry.is_directory())
        folders.push_back(entry.path());
      else
        ++files->numOthers;
    }
    std::sort(folders.begin(), folders.end(),
              [](const fs::path &a, const fs::path &b) { return a.filename().string() < b.filename().string(); });
    for (const fs::path &folder : folders)
      DG_RETURN_IF_ERROR(files->addClass(folder));
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for the names of its files", path);
  } catch (const fs::filesystem_error &error) {
    return Status::error(ErrorKind::badInput, "{}: cannot be listed: {}", path, error.code().message());
  }
  if (files->classes.empty())
    return Status::error(ErrorKind::badInput, "{}: holds no folder; expected one for each class, with images in it",
                         path);
  return std::shared_ptr<const ImageFiles>(std::move(files));
}

template <typename Set, typename... More>
static Result<std::shared_ptr<const SampleSet>> openFolder(const std::string &path, const More &...more) {
  auto files = ImageFiles::list(path);
  if (!files)
    return files.status();
  return std::shared_ptr<const SampleSet>(std::make_shared<Set>(path, std::move(*files), more...));
}

Result<std::shared_ptr<const SampleSet>> openImageFolder(const std::string &path, const ImageForm &form) {
  return openFolder<FolderImages>(path, form);
}

Result<std::shared_ptr<const SampleSet>> openClassFolder(const std::string &path) {
  return openFolder<FolderClasses>(path);
}

Result<std::shared_ptr<const SampleSet>> openImageFile(const std::string &path, const ImageForm &form) {
  if (::access(path.c_str(), R_OK) != 0)
    return Status::error(ErrorKind::badInput, "{}: cannot be read: {}; check the path", path, std::strerror(errno));
  return std::shared_ptr<const SampleSet>(std::make_shared<ImageFile>(path, form));
}

} // namespace dg::data
