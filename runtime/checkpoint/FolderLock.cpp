// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/FolderLock.h"

#include "runtime/support/FileWriting.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace dg::checkpoint {

namespace fs = std::filesystem;

namespace {

/// What a lock says about its run. One word each, in this order, on one line.
struct Holder {
  std::string run, host, place;
  int64_t pid = 0;
  uint64_t started = 0; ///< of the process, in the kernel's ticks: another process with the same number is not it
};

} // namespace

static std::string pathOf(const std::string &directory) { return (fs::path(directory) / lockName).string(); }

static std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return *name ? name : "?";
}

/// Where process numbers mean the same: this start of this kernel, this namespace.
static std::string placeOfProcesses() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  return (boot.empty() ? "?" : boot) + "/" + fs::read_symlink("/proc/self/ns/pid", error).string();
}

/// When that process began; nothing if there is none, or only what its parent has not yet waited for.
static std::optional<uint64_t> startOf(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line) || line.rfind(')') == std::string::npos)
    return std::nullopt;
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::string state, skipped;
  rest >> state;
  constexpr int between = 18; // from the state, field 3, to the start, field 22
  for (int i = 0; i < between; ++i)
    rest >> skipped;
  uint64_t start = 0;
  if (!(rest >> start) || state == "Z" || state == "X")
    return std::nullopt;
  return start;
}

/// Nothing if there is no lock. One that cannot be understood is somebody's all the same.
static std::optional<Holder> readHolder(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return std::nullopt;
  Holder holder;
  if (!(file >> holder.run >> holder.host >> holder.pid >> holder.started >> holder.place))
    return Holder{"?", "?", "?", 0, 0};
  return holder;
}

static std::string describe(const Holder &holder) {
  return fmt::format("run {} (process {} on host {})", holder.run, holder.pid, holder.host);
}

/// Certain only here: of another host, or of another start of this one's kernel, nothing can be asked.
static bool isGone(const Holder &holder) {
  return holder.host == hostName() && holder.place == placeOfProcesses() && startOf(holder.pid) != holder.started;
}

static std::string ageOf(const std::string &path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return "?";
  const int64_t seconds = std::max<int64_t>(std::time(nullptr) - status.st_mtime, 0);
  constexpr int64_t minute = 60, hour = 3600;
  return seconds < 2 * minute ? fmt::format("{} s", seconds)
         : seconds < 2 * hour ? fmt::format("{} min", seconds / minute)
                              : fmt::format("{} h", seconds / hour);
}

/// Writes the line beside the lock and links it to its name. Returns 0, EEXIST if there is a lock, or errno.
static int makeLock(const std::string &path, const Holder &holder) {
  const std::string beside = path + "." + holder.run;
  int file = makeNewFile(beside);
  if (file < 0)
    return -file;
  std::string line = fmt::format("{} {} {} {} {}\n", holder.run, holder.host, holder.pid, holder.started, holder.place);
  int code = writeAllAt(file, line.data(), line.size(), 0);
  if (code == 0 && ::fsync(file) != 0)
    code = errno;
  ::close(file);
  if (code == 0 && ::link(beside.c_str(), path.c_str()) != 0) {
    code = errno;
    // Over NFS an answer can be lost after the link was made: two names tell.
    struct stat status{};
    if (::stat(beside.c_str(), &status) == 0 && status.st_nlink == 2)
      code = 0;
  }
  ::unlink(beside.c_str());
  return code;
}

/// Who may remove the lock of a run that is gone: the one that makes this file.
static std::string guardOf(const std::string &path, const Holder &holder) { return path + ".after-" + holder.run; }

/// Removes the lock of `holder`, and only it: of several runs that find it stale, one removes it, and by then another
/// may have its own there. Returns 0, EEXIST if somebody else is at it, or errno.
static int removeStale(const std::string &path, const Holder &holder) {
  const std::string guard = guardOf(path, holder);
  int file = makeNewFile(guard);
  if (file < 0)
    return -file;
  ::close(file);
  if (auto now = readHolder(path); now && now->run == holder.run)
    ::unlink(path.c_str());
  ::unlink(guard.c_str());
  return 0;
}

Status checkFence(const std::string &directory, const std::string &run) {
  auto holder = readHolder(pathOf(directory));
  if (holder && holder->run == run)
    return Status::ok();
  return Status::error(
      ErrorKind::runFailed,
      "{}: {}; this is run {}, and nothing more of it is saved there: end one of the two, and continue "
      "with --resume",
      pathOf(directory), holder ? "is now the lock of " + describe(*holder) : "was removed", run);
}

Result<FolderLock> FolderLock::take(const std::string &directory) {
  FolderLock lock;
  lock.directory = directory;
  lock.id = randomSuffix();
  std::error_code error;
  const bool wasThere = fs::is_directory(directory, error);
  if (int code = makeFolders(directory); code != 0)
    return Status::error(ErrorKind::usage, "--checkpoint {}: the folder cannot be made on host {}: {}", directory,
                         hostName(), std::strerror(code));
  lock.hasMadeFolder = !wasThere;
  const std::string path = pathOf(directory);
  const pid_t self = ::getpid();
  const Holder own{lock.id, hostName(), placeOfProcesses(), self, startOf(self).value_or(0)};
  std::string inTheWay = path;
  constexpr int mostTries = 50; // others may come and go meanwhile
  for (int tries = 0; tries < mostTries; ++tries) {
    int code = makeLock(path, own);
    if (code == 0) {
      lock.owner = self;
      return lock;
    }
    auto holder = code == EEXIST ? readHolder(path) : std::nullopt;
    if (code == EEXIST && !holder)
      continue; // released just now
    if (holder && !isGone(*holder)) {
      const bool isHere = holder->host == hostName() && holder->place == placeOfProcesses();
      return Status::error(ErrorKind::usage, "--checkpoint {}: {} has written there for {}; {}", directory,
                           describe(*holder), ageOf(path),
                           isHere ? "wait for its end, or choose another folder"
                                  : fmt::format("if it is no more (look on its host), remove {}; else choose another "
                                                "folder",
                                                path));
    }
    if (holder) {
      lock.stale = describe(*holder);
      inTheWay = guardOf(path, *holder);
      code = removeStale(path, *holder);
      if (code == EEXIST)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (code != 0 && code != EEXIST)
      return Status::error(ErrorKind::usage, "--checkpoint {}: host {} cannot write there: {}; choose another folder",
                           directory, hostName(), std::strerror(code));
  }
  return Status::error(ErrorKind::usage,
                       "--checkpoint {}: {} is in the way: other runs are starting there; if none is, remove it",
                       directory, inTheWay);
}

FolderLock::FolderLock(FolderLock &&other) noexcept
    : directory(std::move(other.directory)), id(std::move(other.id)), stale(std::move(other.stale)),
      owner(std::exchange(other.owner, 0)), hasMadeFolder(std::exchange(other.hasMadeFolder, false)) {}

FolderLock::~FolderLock() {
  if (owner == 0 || owner != ::getpid())
    return;
  if (auto holder = readHolder(pathOf(directory)); holder && holder->run == id)
    ::unlink(pathOf(directory).c_str());
  if (hasMadeFolder)
    ::rmdir(directory.c_str()); // only if nothing was saved
}

} // namespace dg::checkpoint
