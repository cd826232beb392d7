// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/FileWriting.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/random.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace dg {

int writeAllAt(int file, const void *data, size_t bytes, uint64_t offset) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::pwrite(file, from, bytes, off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : ENOSPC;
    from += count, bytes -= size_t(count), offset += uint64_t(count);
  }
  return 0;
}

int syncFolder(const std::string &path) {
  int folder = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return errno;
  int code = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  // A file system that cannot synchronise folders (some FUSE and network ones) has no other way to be asked.
  return code == EINVAL || code == ENOTSUP ? 0 : code;
}

int makeFolders(const std::string &path) {
  fs::path folder = path;
  if (!folder.has_filename()) // a slash at the end
    folder = folder.parent_path();
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error))
    return 0;
  if (int code = makeFolders(folder.parent_path().string()); code != 0)
    return code;
  if (!fs::create_directory(folder, error) && error)
    return error.value();
  return syncFolder(folder.parent_path().string());
}

std::string followLinks(const std::string &path) {
  constexpr int mostLinks = 40; // as many as the kernel follows
  fs::path target = path;
  std::error_code error;
  for (int links = 0; links < mostLinks && fs::is_symlink(fs::symlink_status(target, error)); ++links)
    target = target.parent_path() / fs::read_symlink(target, error);
  return target.string();
}

std::string randomSuffix() {
  unsigned char bytes[8] = {};
  // The kernel gives so few bytes at once, or has none at all: then names are only as unique as the time.
  if (::getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count() ^ int64_t(::getpid()) << 40;
    std::memcpy(bytes, &now, sizeof bytes);
  }
  std::string name;
  for (unsigned char byte : bytes)
    name += fmt::format("{:02x}", byte);
  return name;
}

int makeNewFile(const std::string &path) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  return file >= 0 ? file : -errno;
}

int makeFileAnew(const std::string &path) {
  ::unlink(path.c_str());
  return makeNewFile(path);
}

/// Whether it is "NAME.<16 digits>.partial", or what a library makes beside that.
static bool isPartialOf(const std::string &name, const std::string &found) {
  constexpr std::string_view suffix = ".partial";
  constexpr size_t digits = 16;
  if (!found.starts_with(name + ".") || found.size() < name.size() + 1 + digits + suffix.size())
    return false;
  const std::string_view rest = std::string_view(found).substr(name.size() + 1);
  return rest.substr(0, digits).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         rest.substr(digits).starts_with(suffix);
}

std::string makePartialName(const std::string &target) {
  const fs::path path = target, folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (isPartialOf(path.filename().string(), at->path().filename().string()) && at->is_regular_file(ignored) &&
        at->last_write_time(ignored) < fs::file_time_type::clock::now() - std::chrono::hours(24) && !ignored)
      fs::remove(at->path(), ignored);
  }
  return fmt::format("{}.{}.partial", target, randomSuffix());
}

/// Returns 0 or errno. Takes the descriptor; `file` below 0 is the negative of errno. `isDurable`: it is a file, whose
/// bytes are on the disk then.
static int writeTo(int file, std::string_view text, bool isDurable) {
  if (file < 0)
    return -file;
  int code = 0;
  while (!text.empty() && code == 0) {
    ssize_t count = ::write(file, text.data(), text.size()); // a pipe has no offset
    if (count > 0)
      text.remove_prefix(size_t(count));
    else if (count == 0 || errno != EINTR)
      code = count == 0 ? ENOSPC : errno;
  }
  if (code == 0 && isDurable && ::fsync(file) != 0)
    code = errno;
  if (::close(file) != 0 && code == 0)
    code = errno;
  return code;
}

Status writeFile(const std::string &path, std::string_view text) {
  std::error_code error;
  fs::file_status found = fs::status(path, error);
  int code = 0;
  if (fs::exists(found) && !fs::is_regular_file(found)) {
    int device = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    code = writeTo(device >= 0 ? device : -errno, text, false);
  } else {
    const std::string target = followLinks(path), partial = makePartialName(target);
    code = writeTo(makeNewFile(partial), text, true);
    if (code == 0 && std::rename(partial.c_str(), target.c_str()) != 0)
      code = errno;
    if (code != 0)
      unlink(partial.c_str());
    else
      code = syncFolder(fs::path(target).parent_path().string());
  }
  if (code != 0)
    return Status::error(ErrorKind::unwritten, "{}: cannot be written: {}", path, std::strerror(code));
  return Status::ok();
}

} // namespace dg
