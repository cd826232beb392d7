// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/CheckpointWriter.h"

#include "runtime/checkpoint/ShardRuns.h"
#include "runtime/package/ContentHash.h"
#include "runtime/plan/NonFinite.h"
#include "runtime/plan/TaskTraits.h"
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dg::checkpoint {

namespace fs = std::filesystem;

/// Made and removed when a run begins.
static constexpr const char *probeName = "probe.partial";
/// Of the folder of a checkpoint that is being written.
static constexpr const char *partialSuffix = ".partial";

namespace {

/// An open file that closes itself.
class File {
public:
  explicit File(int handle) : handle(handle) {}
  /// What has that name and is no link.
  File(const std::string &path, int flags) : handle(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC)) {
    if (handle < 0)
      handle = -errno;
  }
  ~File() {
    if (handle >= 0)
      ::close(handle);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  /// Below 0: the negative of errno.
  int get() const { return handle; }
  int error() const { return -handle; }

private:
  int handle;
};

} // namespace

static Status failed(const std::string &path, const char *doing, int error) {
  return Status::error(ErrorKind::unwritten, "{}: {}: {}; earlier checkpoints are as they were", path, doing,
                       std::strerror(error));
}

static Status writeAll(int file, const void *data, size_t bytes, uint64_t offset, const std::string &path) {
  int code = writeAllAt(file, data, bytes, offset);
  return code == 0 ? Status::ok() : failed(path, "cannot be written", code);
}

static Status syncNames(const std::string &folder) {
  int code = syncFolder(folder);
  return code == 0 ? Status::ok() : failed(folder, "cannot be synchronised", code);
}

static std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

static std::string probeIn(const std::string &directory) { return (fs::path(directory) / probeName).string(); }

static void removeProbe(const std::string &directory) { ::unlink(probeIn(directory).c_str()); }

void removeUnfinished(const std::string &directory) {
  removeProbe(directory);
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string(); name.starts_with("step-") && name.ends_with(partialSuffix)) {
      std::error_code ignored;
      fs::remove_all(at->path(), ignored);
    }
}

/// Rank 0's side of the question whether everyone can write where the checkpoints go.
static Status makeProbe(const std::string &directory, const std::string &probe) {
  if (int code = makeFolders(directory); code != 0)
    return Status::error(ErrorKind::usage, "--checkpoint {}: the folder cannot be made on host {}: {}", directory,
                         hostName(), std::strerror(code));
  File file(makeFileAnew(probe));
  if (file.get() < 0)
    return Status::error(ErrorKind::usage, "--checkpoint {}: host {} cannot write there: {}; choose another folder",
                         directory, hostName(), std::strerror(file.error()));
  return Status::ok();
}

/// The other ranks' side: they see what rank 0 has made, and may write to it.
static Status openProbe(const std::string &directory, const std::string &probe) {
  File file(probe, O_WRONLY);
  if (file.get() >= 0)
    return Status::ok();
  if (file.error() == ENOENT)
    return Status::error(ErrorKind::usage,
                         "--checkpoint {}: host {} does not see what rank 0 writes there; give a folder that all hosts "
                         "share",
                         directory, hostName());
  return Status::error(ErrorKind::usage, "--checkpoint {}: host {} cannot write there: {}; choose another folder",
                       directory, hostName(), std::strerror(file.error()));
}

/// Which of the tensors a step changes: what is only read, as a mask, may hold infinities from the beginning.
static std::vector<bool> findFloatsWritten(const plan::Plan &plan, const CheckpointTensors &tensors) {
  std::set<std::string> written;
  for (const plan::Task &task : plan.tasks)
    for (plan::ValueId id : writesOf(task))
      written.insert(plan.values[id].name);
  std::vector<bool> found;
  for (plan::ValueId id : tensors.ids)
    found.push_back(plan::isFloat(plan.values[id].dtype) && written.contains(plan.values[id].name));
  return found;
}

/// `consequence`: what follows for the checkpoints of the run.
static Status notFinite(int64_t step, const plan::Value &value, const std::string &bad, const char *consequence) {
  return Status::error(ErrorKind::defect,
                       "step {} made '{}' hold {}{}; find the op that made it with --check-numerics, or save and go "
                       "on with --allow-nan",
                       step, value.name, bad, consequence);
}

Status checkFinite(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values, int64_t step) {
  const CheckpointTensors tensors = tensorsOf(plan);
  const std::vector<bool> mustBeFinite = findFloatsWritten(plan, tensors);
  for (size_t i = 0; i < tensors.ids.size(); ++i) {
    const plan::Value &value = plan.values[tensors.ids[i]];
    if (mustBeFinite[i] && writesShard(value, at))
      DG_RETURN_IF_ERROR(values.inspect(tensors.ids[i], 0, [&](std::span<const std::byte> data) {
        std::string bad = plan::describeNonFinite(data, value.dtype);
        return bad.empty() ? Status::ok() : notFinite(step, value, bad, "");
      }));
  }
  return Status::ok();
}

/// `partial` gets the name `final`. What has that name, whole or not, keeps it until then: a kill at any moment leaves
/// one of the two under it.
static Status moveIntoPlace(const std::string &partial, const std::string &final) {
  std::error_code ignored;
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final.c_str(), RENAME_NOREPLACE) == 0)
    return Status::ok();
  if (errno == EEXIST && ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(partial, ignored); // now the one that was there
    return Status::ok();
  }
  // A file system without these flags, as NFS: what was there keeps its bytes, under another name for a moment.
  std::string replaced = final + ".replaced";
  fs::remove_all(replaced, ignored);
  bool wasThere = ::rename(final.c_str(), replaced.c_str()) == 0;
  if (::rename(partial.c_str(), final.c_str()) != 0) {
    Status status = failed(final, "cannot be renamed into place", errno);
    if (wasThere)
      ::rename(replaced.c_str(), final.c_str());
    return status;
  }
  fs::remove_all(replaced, ignored);
  return Status::ok();
}

Result<CheckpointWriter> CheckpointWriter::create(const plan::Plan &plan, int64_t rank, const std::string &directory,
                                                  const ValueAccess &values, Agreement agree, bool allowNan,
                                                  const std::string &run) {
  CheckpointWriter writer;
  writer.plan = &plan;
  writer.rank = rank;
  writer.at = plan.mesh.coordinatesOf(rank);
  writer.directory = directory;
  writer.run = run;
  writer.values = &values;
  writer.agree = std::move(agree);
  writer.tensors = tensorsOf(plan);
  writer.mustBeFinite = findFloatsWritten(plan, writer.tensors);
  if (allowNan)
    writer.mustBeFinite.assign(writer.tensors.ids.size(), false);
  auto layout = package::layoutSafetensors(writer.tensors.specs, {{"model", plan.model.name}});
  if (!layout)
    return layout.status();
  writer.layout = std::move(*layout);
  // Found now and not at the first save, which may be hours later.
  const std::string probe = probeIn(directory);
  Status status = writer.agree(rank == 0 ? makeProbe(directory, probe) : Status::ok());
  if (status)
    status = writer.agree(rank == 0 ? Status::ok() : openProbe(directory, probe));
  if (rank == 0)
    removeProbe(directory);
  if (!status)
    return status;
  return writer;
}

/// The whole file is reserved first: a disk that is too small is found before anything is written.
Status CheckpointWriter::reserve(const std::string &partial) const {
  std::error_code error;
  fs::remove_all(partial, error);
  if (!fs::create_directory(partial, error))
    return Status::error(ErrorKind::unwritten, "{}: cannot be made: {}; earlier checkpoints are as they were", partial,
                         error.message());
  std::string path = partial + "/" + tensorFileName;
  File file(makeNewFile(path));
  if (file.get() < 0)
    return failed(path, "cannot be made", file.error());
  if (int code = ::posix_fallocate(file.get(), 0, off_t(layout.fileBytes)); code != 0) {
    struct statvfs disk{};
    uint64_t available = ::statvfs(partial.c_str(), &disk) == 0 ? uint64_t(disk.f_bavail) * disk.f_frsize : 0;
    return Status::error(ErrorKind::unwritten,
                         "{}: {} bytes are needed, {} are free: {}; earlier checkpoints are as they were", path,
                         layout.fileBytes, available, std::strerror(code));
  }
  return writeAll(file.get(), layout.header.data(), layout.header.size(), 0, path);
}

Status CheckpointWriter::writeShards(const std::string &partial, int64_t step) const {
  std::string path = partial + "/" + tensorFileName;
  File file(path, O_WRONLY);
  if (file.get() < 0)
    return failed(path, "cannot be opened", file.error());
  bool wrote = false;
  for (size_t i = 0; i < tensors.ids.size(); ++i) {
    const plan::Value &value = plan->values[tensors.ids[i]];
    if (!writesShard(value, at))
      continue;
    DG_RETURN_IF_ERROR(values->inspect(tensors.ids[i], 0, [&](std::span<const std::byte> data) {
      if (std::string bad = mustBeFinite[i] ? plan::describeNonFinite(data, value.dtype) : ""; !bad.empty())
        return notFinite(step, value, bad, ": no checkpoint is written of it, earlier ones are as they were");
      size_t elementBytes = size_t(plan::sizeOf(value.dtype));
      for (const ShardRun &run : shardRunsOf(value, plan->mesh, at)) {
        DG_RETURN_IF_ERROR(writeAll(file.get(), data.data() + size_t(run.local) * elementBytes,
                                    size_t(run.elements) * elementBytes,
                                    layout.offsets[i] + uint64_t(run.global) * elementBytes, path));
        wrote = true;
      }
      return Status::ok();
    }));
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
      return failed(tensorPath, "cannot be synchronised", file.get() < 0 ? file.error() : errno);
  }
  auto mapped = package::MappedFile::open(tensorPath);
  if (!mapped)
    return mapped.status();
  auto bytes = mapped->bytes();
  std::string text = toJson({state, bytes.size(), package::hashOf(bytes)});
  {
    File file(makeNewFile(manifestPath));
    if (file.get() < 0)
      return failed(manifestPath, "cannot be made", file.error());
    DG_RETURN_IF_ERROR(writeAll(file.get(), text.data(), text.size(), 0, manifestPath));
    if (::fsync(file.get()) != 0)
      return failed(manifestPath, "cannot be synchronised", errno);
  }
  DG_RETURN_IF_ERROR(syncNames(partial));
  // A manifest that cannot be read would make a checkpoint that does not exist.
  auto written = readManifest(partial);
  if (!written)
    return Status::error(ErrorKind::runFailed, "{}; earlier checkpoints are as they were", written.status().message());
  DG_RETURN_IF_ERROR(checkOwner());
  DG_RETURN_IF_ERROR(moveIntoPlace(partial, final));
  return syncNames(directory);
}

Result<std::string> CheckpointWriter::write(const TrainingState &state) {
  std::string final = (fs::path(directory) / nameOfStep(state.step)).string(), partial = final + partialSuffix;
  Status status = agree(rank == 0 ? reserve(partial) : Status::ok());
  if (status)
    status = agree(writeShards(partial, state.step));
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
