// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/CheckpointWriter.h"

#include "runtime/checkpoint/ShardRuns.h"
#include "runtime/package/ContentHash.h"
#include "runtime/plan/NonFinite.h"
#include "runtime/plan/SavedValues.h"
#include "runtime/plan/TaskTraits.h"
#include "runtime/support/FileWriting.h"

#include <algorithm>
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
    if (std::string name = at->path().filename().string(); name.starts_with("step-")) {
      std::error_code ignored;
      const fs::path successor = at->path().parent_path() / at->path().stem();
      const bool isReplaced = name.ends_with(replacedSuffix);
      if (isReplaced && !fs::exists(successor, ignored))
        fs::rename(at->path(), successor, ignored); // it is the checkpoint of its step still
      else if (isReplaced || name.ends_with(partialSuffix))
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

static Status findNonFinite(const plan::Plan &plan, plan::Coordinates at, const CheckpointTensors &tensors,
                            const std::vector<bool> &mustBeFinite, const ValueAccess &values, int64_t step,
                            const char *consequence) {
  for (size_t i = 0; i < tensors.ids.size(); ++i) {
    const plan::Value &value = plan.values[tensors.ids[i]];
    if (mustBeFinite[i] && plan::writesShard(value, at))
      DG_RETURN_IF_ERROR(values.inspect(tensors.ids[i], 0, [&](std::span<const std::byte> data) {
        std::string bad = plan::describeNonFinite(data, value.dtype);
        return bad.empty() ? Status::ok() : notFinite(step, value, bad, consequence);
      }));
  }
  return Status::ok();
}

Status checkFinite(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values, int64_t step) {
  const CheckpointTensors tensors = tensorsOf(plan);
  return findNonFinite(plan, at, tensors, findFloatsWritten(plan, tensors), values, step, "");
}

/// `partial` gets the name `final`. What has that name, whole or not, keeps it until then: a kill at any moment leaves
/// one of the two under it. It is removed only once the new name is on the disk: else a crash could leave the old name
/// with nothing behind it.
static Status moveIntoPlace(const std::string &partial, const std::string &final) {
  std::error_code ignored;
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final.c_str(), RENAME_NOREPLACE) == 0)
    return Status::ok();
  const std::string directory = fs::path(final).parent_path().string();
  if (errno == EEXIST && ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0) {
    DG_RETURN_IF_ERROR(syncNames(directory));
    fs::remove_all(partial, ignored); // now the one that was there
    return Status::ok();
  }
  // A file system without these flags, as NFS: what was there keeps its bytes, under another name for a moment.
  std::string replaced = final + std::string(replacedSuffix);
  if (fs::exists(final, ignored))
    fs::remove_all(replaced, ignored);
  bool wasThere = ::rename(final.c_str(), replaced.c_str()) == 0;
  if (::rename(partial.c_str(), final.c_str()) != 0) {
    Status status = failed(final, "cannot be renamed into place", errno);
    if (wasThere)
      ::rename(replaced.c_str(), final.c_str());
    return status;
  }
  DG_RETURN_IF_ERROR(syncNames(directory));
  fs::remove_all(replaced, ignored);
  return Status::ok();
}

Result<CheckpointWriter> CheckpointWriter::create(const plan::Plan &plan, int64_t rank, const std::string &directory,
                                                  const Agreement &agree, bool allowNan, const std::string &run) {
  CheckpointWriter writer;
  writer.plan = &plan;
  writer.rank = rank;
  writer.at = plan.mesh.coordinatesOf(rank);
  writer.directory = directory;
  writer.run = run;
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
  Status status = agree(rank == 0 ? makeProbe(directory, probe) : Status::ok());
  if (status)
    status = agree(rank == 0 ? Status::ok() : openProbe(directory, probe));
  if (rank == 0)
    removeProbe(directory);
  if (!status)
    return status;
  return writer;
}

std::string CheckpointWriter::pathOf(int64_t step) const { return (fs::path(directory) / nameOfStep(step)).string(); }

std::string CheckpointWriter::partialOf(int64_t step) const { return pathOf(step) + partialSuffix; }

std::vector<plan::ValueId> CheckpointWriter::ownValues() const {
  std::vector<plan::ValueId> ids;
  for (plan::ValueId id : tensors.ids)
    if (plan::writesShard(plan->values[id], at))
      ids.push_back(id);
  return ids;
}

Status CheckpointWriter::forEachRun(plan::Coordinates of,
                                    const std::function<Status(size_t, const ShardRun &)> &use) const {
  for (size_t i = 0; i < tensors.ids.size(); ++i) {
    const plan::Value &value = plan->values[tensors.ids[i]];
    if (!plan::writesShard(value, of))
      continue;
    const auto elementBytes = plan::sizeOf(value.dtype);
    for (const ShardRun &run : shardRunsOf(value, plan->mesh, of))
      DG_RETURN_IF_ERROR(use(i, {run.local * elementBytes, run.global * elementBytes, run.elements * elementBytes}));
  }
  return Status::ok();
}

/// The whole file is reserved first: a disk that is too small is found before anything is written.
Status CheckpointWriter::reserve(int64_t step) const {
  const std::string partial = partialOf(step);
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

Status CheckpointWriter::checkFinite(int64_t step, const ValueAccess &from) const {
  return findNonFinite(*plan, at, tensors, mustBeFinite, from, step,
                       ": no checkpoint is written of it, earlier ones are as they were");
}

Result<std::string> CheckpointWriter::writeShards(int64_t step, const ValueAccess &from,
                                                  const std::atomic<bool> &isCancelled) const {
  std::string path = partialOf(step) + "/" + tensorFileName;
  File file(path, O_WRONLY);
  if (file.get() < 0)
    return failed(path, "cannot be opened", file.error());
  constexpr int64_t mostAtOnce = 8 << 20;     // between two looks at isCancelled
  constexpr int64_t mostUnsynced = 256 << 20; // else the last call would be silent for as long as the whole takes
  package::ContentHash hash;
  int64_t unsynced = 0;
  auto write = [&](size_t tensor, const ShardRun &run) {
    return from.inspect(tensors.ids[tensor], 0, [&](std::span<const std::byte> data) {
      for (int64_t done = 0, count; done < run.elements; done += count) {
        if (isCancelled)
          return Status::error(ErrorKind::runFailed, "{}: the run ended while it was written", path);
        count = std::min(run.elements - done, mostAtOnce);
        const auto part = data.subspan(size_t(run.local + done), size_t(count));
        hash.add(part); // before the system has seen it
        DG_RETURN_IF_ERROR(
            writeAll(file.get(), part.data(), part.size(), layout.offsets[tensor] + uint64_t(run.global + done), path));
        ++*moves;
        unsynced += count;
        if (unsynced >= mostUnsynced && ::fdatasync(file.get()) != 0)
          return failed(path, "cannot be synchronised", errno);
        unsynced %= mostUnsynced;
      }
      return Status::ok();
    });
  };
  DG_RETURN_IF_ERROR(forEachRun(at, write));
  if (::fdatasync(file.get()) != 0)
    return failed(path, "cannot be synchronised", errno);
  return hash.text();
}

namespace {

/// Bytes of the file that must be those which somebody wrote, in their order.
struct Part {
  struct Piece {
    uint64_t begin, end;
  };
  std::string who, expected; ///< the hash
  std::vector<Piece> pieces = {};
  size_t next = 0; ///< the first piece that is not read to its end
  package::ContentHash hash = {};

  void add(uint64_t offset, std::span<const std::byte> read) {
    const uint64_t end = offset + read.size();
    for (; next < pieces.size() && pieces[next].begin < end; ++next) {
      const uint64_t from = std::max(pieces[next].begin, offset), to = std::min(pieces[next].end, end);
      hash.add(read.subspan(from - offset, to - from));
      if (pieces[next].end > end)
        return;
    }
  }
};

} // namespace

/// Reads the whole file, for the hash of all and those of the parts. Not through a mapping: a disk that cannot be read
/// would be a signal there. Returns 0 or errno.
static int readBack(int file, uint64_t bytes, package::ContentHash &whole, std::vector<Part> &parts,
                    std::atomic<uint64_t> &moves) {
  std::vector<std::byte> buffer(std::min<uint64_t>(bytes, 8 << 20));
  for (uint64_t offset = 0; offset < bytes;) {
    const ssize_t count = ::pread(file, buffer.data(), buffer.size(), off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : EIO; // shorter than it was made
    const std::span<const std::byte> read(buffer.data(), size_t(count));
    whole.add(read);
    for (Part &part : parts)
      part.add(offset, read);
    offset += uint64_t(count);
    ++moves;
  }
  return 0;
}

Status CheckpointWriter::prove(const TrainingState &state, const std::vector<std::string> &hashes) const {
  const std::string partial = partialOf(state.step);
  std::string tensorPath = partial + "/" + tensorFileName, manifestPath = partial + "/" + manifestFileName;
  std::vector<Part> parts;
  parts.push_back({"its header", package::hashOf(layout.header), {{0, layout.header.size()}}});
  for (size_t other = 0; other < hashes.size(); ++other) {
    Part part{fmt::format("rank {}'s part", other), hashes[other]};
    auto add = [&](size_t tensor, const ShardRun &run) {
      const uint64_t begin = layout.offsets[tensor] + uint64_t(run.global);
      part.pieces.push_back({begin, begin + uint64_t(run.elements)});
      return Status::ok();
    };
    DG_RETURN_IF_ERROR(forEachRun(plan->mesh.coordinatesOf(int64_t(other)), add));
    parts.push_back(std::move(part));
  }
  package::ContentHash whole;
  {
    File file(tensorPath, O_RDONLY);
    if (file.get() < 0 || ::fsync(file.get()) != 0)
      return failed(tensorPath, "cannot be synchronised", file.get() < 0 ? file.error() : errno);
    ++*moves;
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED); // what is read now comes from the disk
    if (int code = readBack(file.get(), layout.fileBytes, whole, parts, *moves); code != 0)
      return failed(tensorPath, "cannot be read back", code);
  }
  for (const Part &part : parts)
    if (part.hash.text() != part.expected)
      return Status::error(ErrorKind::runFailed,
                           "{}: what is read back of {} is not what was written: look at the disk and the memory of "
                           "the hosts; earlier checkpoints are as they were",
                           tensorPath, part.who);
  const std::string text = toJson({state, layout.fileBytes, whole.text()});
  {
    File file(makeNewFile(manifestPath));
    if (file.get() < 0)
      return failed(manifestPath, "cannot be made", file.error());
    DG_RETURN_IF_ERROR(writeAll(file.get(), text.data(), text.size(), 0, manifestPath));
    if (::fsync(file.get()) != 0)
      return failed(manifestPath, "cannot be synchronised", errno);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  DG_RETURN_IF_ERROR(syncNames(partial));
  // A manifest that cannot be read would make a checkpoint that does not exist.
  auto written = readManifest(partial);
  if (!written)
    return Status::error(ErrorKind::runFailed, "{}; earlier checkpoints are as they were", written.status().message());
  return Status::ok();
}

Status CheckpointWriter::publish(int64_t step) const {
  DG_RETURN_IF_ERROR(moveIntoPlace(partialOf(step), pathOf(step)));
  return syncNames(directory);
}

void CheckpointWriter::discard(int64_t step) const {
  std::error_code error;
  fs::remove_all(partialOf(step), error);
}

} // namespace dg::checkpoint
