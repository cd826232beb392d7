// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/CheckpointWriter.h"

#include "runtime/checkpoint/ShardRuns.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dg::checkpoint {

namespace fs = std::filesystem;

namespace {

/// An open file that closes itself.
class File {
public:
  File(const std::string &path, int flags) : handle(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (handle >= 0)
      ::close(handle);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int get() const { return handle; }

private:
  int handle;
};

} // namespace

static Status failed(const std::string &path, const char *doing, int error) {
  return Status::error(ErrorKind::runFailed, "{}: {}: {}; earlier checkpoints are as they were", path, doing,
                       std::strerror(error));
}

static Status writeAll(int file, const void *data, size_t bytes, uint64_t offset, const std::string &path) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::pwrite(file, from, bytes, off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failed(path, "cannot be written", count < 0 ? errno : ENOSPC);
    from += count, bytes -= size_t(count), offset += uint64_t(count);
  }
  return Status::ok();
}

static Status syncFolder(const std::string &path) {
  File folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0 || ::fsync(folder.get()) != 0)
    return failed(path, "cannot be synchronised", errno);
  return Status::ok();
}

Result<CheckpointWriter> CheckpointWriter::create(const plan::Plan &plan, int64_t rank, const std::string &directory,
                                                  ValueData dataOf, Agreement agree) {
  CheckpointWriter writer;
  writer.plan = &plan;
  writer.rank = rank;
  writer.at = plan.mesh.coordinatesOf(rank);
  writer.directory = directory;
  writer.dataOf = std::move(dataOf);
  writer.agree = std::move(agree);
  writer.tensors = tensorsOf(plan);
  auto layout = package::layoutSafetensors(writer.tensors.specs, {{"model", plan.model.name}});
  if (!layout)
    return layout.status();
  writer.layout = std::move(*layout);
  if (rank == 0) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error)
      return Status::error(ErrorKind::usage, "--checkpoint {}: the folder cannot be made: {}", directory,
                           error.message());
  }
  return writer;
}

/// The whole file is reserved first: a disk that is too small is found before anything is written.
Status CheckpointWriter::reserve(const std::string &partial) const {
  std::error_code error;
  fs::remove_all(partial, error);
  if (!fs::create_directory(partial, error))
    return Status::error(ErrorKind::runFailed, "{}: cannot be made: {}; earlier checkpoints are as they were", partial,
                         error.message());
  std::string path = partial + "/" + tensorFileName;
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file.get() < 0)
    return failed(path, "cannot be made", errno);
  if (int code = ::posix_fallocate(file.get(), 0, off_t(layout.fileBytes)); code != 0) {
    struct statvfs disk{};
    uint64_t available = ::statvfs(partial.c_str(), &disk) == 0 ? uint64_t(disk.f_bavail) * disk.f_frsize : 0;
    return Status::error(ErrorKind::runFailed,
                         "{}: {} bytes are needed, {} are free: {}; earlier checkpoints are as they were", path,
                         layout.fileBytes, available, std::strerror(code));
  }
  return writeAll(file.get(), layout.header.data(), layout.header.size(), 0, path);
}

Status CheckpointWriter::writeShards(const std::string &partial) const {
  std::string path = partial + "/" + tensorFileName;
  File file(path, O_WRONLY);
  if (file.get() < 0)
    return failed(path, "cannot be opened", errno);
  bool wrote = false;
  for (size_t i = 0; i < tensors.ids.size(); ++i) {
    const plan::Value &value = plan->values[tensors.ids[i]];
    if (!writesShard(value, at))
      continue;
    const std::byte *data = dataOf(tensors.ids[i]);
    if (!data)
      return Status::error(ErrorKind::runFailed, "{}: rank {} has no data of '{}'", path, rank, value.name);
    size_t elementBytes = size_t(plan::sizeOf(value.dtype));
    for (const ShardRun &run : shardRunsOf(value, plan->mesh, at)) {
      DG_RETURN_IF_ERROR(writeAll(file.get(), data + size_t(run.local) * elementBytes,
                                  size_t(run.elements) * elementBytes,
                                  layout.offsets[i] + uint64_t(run.global) * elementBytes, path));
      wrote = true;
    }
  }
  if (wrote && ::fdatasync(file.get()) != 0)
    return failed(path, "cannot be synchronised", errno);
  return Status::ok();
}

Status CheckpointWriter::finish(const std::string &partial, const std::string &final,
                                const TrainingState &state) const {
  std::string tensorPath = partial + "/" + tensorFileName, manifestPath = partial + "/" + manifestFileName;
  {
    File file(tensorPath, O_RDONLY);
    if (file.get() < 0 || ::fsync(file.get()) != 0)
      return failed(tensorPath, "cannot be synchronised", errno);
  }
  auto mapped = package::MappedFile::open(tensorPath);
  if (!mapped)
    return mapped.status();
  auto bytes = mapped->bytes();
  std::string text = toJson({state, bytes.size(), hashOf(bytes.data(), bytes.size())});
  {
    File file(manifestPath, O_WRONLY | O_CREAT | O_EXCL);
    if (file.get() < 0)
      return failed(manifestPath, "cannot be made", errno);
    DG_RETURN_IF_ERROR(writeAll(file.get(), text.data(), text.size(), 0, manifestPath));
    if (::fsync(file.get()) != 0)
      return failed(manifestPath, "cannot be synchronised", errno);
  }
  DG_RETURN_IF_ERROR(syncFolder(partial));
  std::error_code error;
  if (fs::exists(final, error)) // one that is not whole: a whole one would have been continued from
    fs::remove_all(final, error);
  if (::rename(partial.c_str(), final.c_str()) != 0)
    return failed(final, "cannot be renamed into place", errno);
  return syncFolder(directory);
}

Result<std::string> CheckpointWriter::write(const TrainingState &state) {
  std::string final = (fs::path(directory) / nameOfStep(state.step)).string(), partial = final + ".partial";
  Status status = agree(rank == 0 ? reserve(partial) : Status::ok());
  if (status)
    status = agree(writeShards(partial));
  if (status)
    status = agree(rank == 0 ? finish(partial, final, state) : Status::ok());
  if (status)
    return final;
  if (rank == 0) {
    std::error_code error;
    fs::remove_all(partial, error);
  }
  return status;
}

} // namespace dg::checkpoint
