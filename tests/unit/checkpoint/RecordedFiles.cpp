// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/checkpoint/RecordedFiles.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace dg::test {

namespace fs = std::filesystem;

uint32_t FileTree::find(const std::string &path, bool &found) const {
  uint32_t at = 0;
  found = true;
  for (const fs::path &part : fs::path(path)) {
    if (part.empty() || part == ".")
      continue;
    const auto &names = nodes.at(at).names;
    auto next = names.find(part.string());
    if (next == names.end())
      return found = false, 0;
    at = next->second;
  }
  return at;
}

static void addPaths(const FileTree &tree, uint32_t at, const std::string &path, std::string &text) {
  const FileTree::Node &node = tree.nodes.at(at);
  text += path + (node.isFolder ? "/" : node.isLink ? "@" : "=") + node.bytes + '\n';
  for (const auto &[name, child] : node.names)
    addPaths(tree, child, path + "/" + name, text);
}

std::string FileTree::describe() const {
  std::string text;
  addPaths(*this, 0, "", text);
  return text;
}

static void makeNode(const FileTree &tree, uint32_t at, const fs::path &path) {
  const FileTree::Node &node = tree.nodes.at(at);
  if (node.isLink)
    fs::create_symlink(node.bytes, path);
  else if (!node.isFolder)
    std::ofstream(path, std::ios::binary) << node.bytes;
  else
    fs::create_directories(path);
  for (const auto &[name, child] : node.names)
    makeNode(tree, child, path / name);
}

void FileTree::makeAt(const std::string &folder) const { makeNode(*this, 0, folder); }

static void readNode(FileTree &tree, uint32_t at, const fs::path &path) {
  for (const auto &entry : fs::directory_iterator(path)) {
    const auto made = uint32_t(tree.nodes.size());
    FileTree::Node node;
    node.isLink = entry.is_symlink();
    node.isFolder = !node.isLink && entry.is_directory();
    if (node.isLink)
      node.bytes = fs::read_symlink(entry.path()).string();
    else if (!node.isFolder) {
      std::ifstream in(entry.path(), std::ios::binary);
      node.bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const bool isFolder = node.isFolder;
    tree.nodes.emplace(made, std::move(node));
    tree.nodes.at(at).names[entry.path().filename().string()] = made;
    if (isFolder)
      readNode(tree, made, entry.path());
  }
}

FileTree FileTree::read(const std::string &folder) {
  FileTree tree;
  readNode(tree, 0, folder);
  return tree;
}

/// What cannot be done, because what it builds on is not on the disk, is left out.
static void apply(FileTree &tree, const FileChange &change) {
  using Kind = FileChange::Kind;
  if (change.kind == Kind::synchronise || change.kind == Kind::note)
    return;
  if (change.kind == Kind::write || change.kind == Kind::grow) {
    auto node = tree.nodes.find(change.node);
    if (node == tree.nodes.end())
      return;
    std::string &bytes = node->second.bytes;
    bytes.resize(std::max<size_t>(bytes.size(), change.offset + change.bytes.size()));
    bytes.replace(change.offset, change.bytes.size(), change.bytes);
    return;
  }
  auto folder = tree.nodes.find(change.folder);
  if (change.kind == Kind::make)
    tree.nodes.emplace(change.node, change.made); // its bytes may come before its name
  if (folder == tree.nodes.end())
    return;
  auto &names = folder->second.names;
  auto from = names.find(change.name);
  if (change.kind == Kind::make) {
    names.emplace(change.name, change.node);
  } else if (from == names.end()) {
    return;
  } else if (change.kind == Kind::remove) {
    const FileTree::Node &node = tree.nodes.at(from->second);
    if (!node.isFolder || node.names.empty())
      names.erase(from);
  } else if (auto to = names.find(change.to); change.kind == Kind::exchange) {
    if (to != names.end())
      std::swap(from->second, to->second);
  } else {
    if (to != names.end() && !tree.nodes.at(to->second).names.empty())
      return; // never over a folder that holds something
    names[change.to] = from->second;
    names.erase(change.name);
  }
}

FileTree applyAll(const std::vector<FileChange> &changes) {
  FileTree tree;
  for (const FileChange &change : changes)
    apply(tree, change);
  return tree;
}

/// Writes by blocks, each of which reaches the disk by itself.
static std::vector<FileChange> splitWrites(const std::vector<FileChange> &changes) {
  constexpr uint64_t block = 4096;
  std::vector<FileChange> split;
  for (const FileChange &change : changes) {
    if (change.kind != FileChange::Kind::write) {
      split.push_back(change);
      continue;
    }
    for (uint64_t done = 0; done < change.bytes.size();) {
      const uint64_t count = std::min(block - (change.offset + done) % block, change.bytes.size() - done);
      FileChange part = change;
      part.offset += done;
      part.bytes = change.bytes.substr(done, count);
      split.push_back(std::move(part));
      done += count;
    }
  }
  return split;
}

size_t forEachCrash(const std::vector<FileChange> &recorded, std::mt19937_64 &random,
                    const std::function<bool(const FileTree &, uint64_t lastNote)> &use) {
  using Kind = FileChange::Kind;
  const std::vector<FileChange> changes = splitWrites(recorded);
  std::set<std::pair<uint64_t, size_t>> seen; // note, hash of the state
  size_t numStates = 0;
  uint64_t lastNote = 0;
  FileTree certain;                // what is promised
  std::vector<FileChange> pending; // the others, in order
  for (size_t end = 0; end <= changes.size(); ++end) {
    constexpr size_t mostForAll = 10, mostRandom = 1 << mostForAll;
    const bool isFew = pending.size() <= mostForAll;
    const size_t numSubsets = isFew ? size_t(1) << pending.size() : mostRandom + 2 * pending.size();
    for (size_t subset = 0; subset < numSubsets; ++subset) {
      FileTree tree = certain;
      const uint64_t bits = isFew ? subset : random();
      for (size_t i = 0; i < pending.size(); ++i) {
        bool isThere = bits >> (i % 64) & 1;
        if (!isFew && subset >= mostRandom) { // only one of them, or all but one
          const size_t one = (subset - mostRandom) / 2;
          isThere = (i == one) == ((subset - mostRandom) % 2 == 0);
        }
        if (isThere)
          apply(tree, pending[i]);
      }
      ++numStates;
      const bool isNew = seen.insert({lastNote, std::hash<std::string>()(tree.describe())}).second;
      if (isNew && !use(tree, lastNote))
        return numStates;
    }
    if (end == changes.size())
      break;
    const FileChange &next = changes[end];
    if (next.kind == Kind::note) {
      lastNote = next.offset;
    } else if (next.kind == Kind::synchronise) {
      // In the order of all: what is certain now may build on what is not yet.
      std::vector<FileChange> left;
      for (FileChange &change : pending) {
        const bool isOfFile = change.kind == Kind::write || change.kind == Kind::grow;
        if ((isOfFile ? change.node : change.folder) == next.node)
          apply(certain, change);
        else
          left.push_back(std::move(change));
      }
      pending = std::move(left);
    } else {
      if (next.kind == Kind::make)
        certain.nodes.emplace(next.node, next.made); // without a name
      pending.push_back(next);
    }
  }
  return numStates;
}

namespace {

/// What is recorded now, of all threads.
struct Recorder {
  std::recursive_mutex mutex;
  bool isOn = false, refusesFlags = false;
  std::string root;
  FileTree tree; ///< as it is
  uint32_t numNodes = 1;
  std::vector<FileChange> changes;
  std::map<int, uint32_t> files; ///< open descriptors

  void add(FileChange change) {
    apply(tree, change);
    changes.push_back(std::move(change));
  }
  /// Below the root; nothing: elsewhere.
  std::optional<std::string> inside(const std::string &path) const {
    if (isOn && path + "/" == root)
      return "";
    if (!isOn || !path.starts_with(root))
      return std::nullopt;
    return path.substr(root.size());
  }
  /// Where a name lies: its folder, if that is known, and itself.
  std::optional<std::pair<uint32_t, std::string>> place(int at, const char *path) const {
    const fs::path whole = path;
    bool found = false;
    uint32_t folder = 0;
    if (auto base = files.find(at); isOn && whole.is_relative() && base != files.end())
      return std::pair(base->second, whole.string());
    auto relative = inside(fs::absolute(whole).lexically_normal().string());
    if (!relative)
      return std::nullopt;
    folder = tree.find(fs::path(*relative).relative_path().parent_path().string(), found);
    if (!found)
      return std::nullopt;
    return std::pair(folder, fs::path(*relative).filename().string());
  }
  std::optional<uint32_t> nodeAt(int at, const char *path) const {
    auto there = place(at, path);
    if (!there)
      return std::nullopt;
    if (there->second.empty() || there->second == ".")
      return there->first;
    const auto &names = tree.nodes.at(there->first).names;
    auto found = names.find(there->second);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  }
  void make(int at, const char *path, FileTree::Node node) {
    if (auto there = place(at, path))
      add({.kind = FileChange::Kind::make,
           .node = numNodes++,
           .folder = there->first,
           .name = there->second,
           .made = std::move(node)});
  }
  void remove(int at, const char *path) {
    if (auto there = place(at, path))
      add({.kind = FileChange::Kind::remove, .folder = there->first, .name = there->second});
  }
  void rename(const char *from, const char *to, bool isExchange) {
    auto first = place(AT_FDCWD, from), second = place(AT_FDCWD, to);
    if (first && second)
      add({.kind = isExchange ? FileChange::Kind::exchange : FileChange::Kind::rename,
           .folder = first->first,
           .name = first->second,
           .to = second->second});
  }
};

Recorder &recorder() {
  static Recorder one;
  return one;
}

} // namespace

void beginRecording(const std::string &folder) {
  std::lock_guard lock(recorder().mutex);
  recorder().root = folder + "/";
  recorder().tree = {};
  recorder().numNodes = 1;
  recorder().changes.clear();
  recorder().files.clear();
  recorder().isOn = true;
}

void note(uint64_t number) {
  std::lock_guard lock(recorder().mutex);
  recorder().add({.kind = FileChange::Kind::note, .offset = number});
}

std::vector<FileChange> endRecording() {
  std::lock_guard lock(recorder().mutex);
  recorder().isOn = false;
  return std::move(recorder().changes);
}

void refuseRenameFlags(bool refuse) { recorder().refusesFlags = refuse; }

} // namespace dg::test

using dg::test::FileChange;
using dg::test::recorder;

/// The next definition of a function that one here stands in front of.
template <typename Function> static Function *next(const char *name) {
  return reinterpret_cast<Function *>(::dlsym(RTLD_NEXT, name));
}

/// Records what a call did, if it did it, and returns what it returned.
template <typename Code> static Code recorded(Code code, const std::function<void()> &change) {
  const int error = errno;
  if (code >= 0)
    change();
  errno = error;
  return code;
}

/// What happens to an open file, if it is one of the folder.
static void changeFile(int file, FileChange change) {
  if (auto known = recorder().files.find(file); known != recorder().files.end()) {
    change.node = known->second;
    recorder().add(std::move(change));
  }
}

// Under names of their own here, since the C library's headers declare and define the others; __asm__ says which symbol
// each is.
extern "C" {
int recordOpenAt(int at, const char *path, int flags, ...) __asm__("openat");
int recordOpenAt64(int at, const char *path, int flags, ...) __asm__("openat64");
int recordOpenAt2(int at, const char *path, int flags) __asm__("__openat_2");
int recordOpen(const char *path, int flags, ...) __asm__("open");
int recordOpen64(const char *path, int flags, ...) __asm__("open64");
int recordOpen2(const char *path, int flags) __asm__("__open_2");
int recordClose(int file) __asm__("close");
int recordMkdir(const char *path, mode_t mode) __asm__("mkdir");
int recordSymlink(const char *target, const char *path) __asm__("symlink");
int recordUnlinkAt(int at, const char *path, int flags) __asm__("unlinkat");
int recordUnlink(const char *path) __asm__("unlink");
int recordRmdir(const char *path) __asm__("rmdir");
int recordRemove(const char *path) __asm__("remove");
int recordRename2(int from, const char *path, int to, const char *target, unsigned flags) __asm__("renameat2");
int recordRename(const char *path, const char *target) __asm__("rename");
ssize_t recordWrite(int file, const void *data, size_t bytes, off_t offset) __asm__("pwrite");
ssize_t recordWrite64(int file, const void *data, size_t bytes, off_t offset) __asm__("pwrite64");
int recordAllocate(int file, off_t offset, off_t bytes) __asm__("posix_fallocate");
int recordAllocate64(int file, off_t offset, off_t bytes) __asm__("posix_fallocate64");
int recordSync(int file) __asm__("fsync");
int recordDataSync(int file) __asm__("fdatasync");
}

static int openFile(int at, const char *path, int flags, mode_t mode) {
  std::lock_guard lock(recorder().mutex);
  const bool wasThere = recorder().nodeAt(at, path).has_value();
  static auto call = next<int(int, const char *, int, ...)>("openat");
  const int file = call(at, path, flags, mode);
  recorder().files.erase(file); // whatever had that number was closed by the library
  return recorded(file, [&] {
    if (!wasThere && (flags & O_CREAT))
      recorder().make(at, path, {});
    if (auto node = recorder().nodeAt(at, path))
      recorder().files[file] = *node;
  });
}

#define MODE_OF(flags)                                                                                                 \
  mode_t mode = 0;                                                                                                     \
  if ((flags) & O_CREAT) {                                                                                             \
    va_list list;                                                                                                      \
    va_start(list, flags);                                                                                             \
    mode = va_arg(list, mode_t);                                                                                       \
    va_end(list);                                                                                                      \
  }

int recordOpenAt(int at, const char *path, int flags, ...) {
  MODE_OF(flags)
  return openFile(at, path, flags, mode);
}
int recordOpenAt64(int at, const char *path, int flags, ...) {
  MODE_OF(flags)
  return openFile(at, path, flags, mode);
}
int recordOpen(const char *path, int flags, ...) {
  MODE_OF(flags)
  return openFile(AT_FDCWD, path, flags, mode);
}
int recordOpen64(const char *path, int flags, ...) {
  MODE_OF(flags)
  return openFile(AT_FDCWD, path, flags, mode);
}
int recordOpenAt2(int at, const char *path, int flags) { return openFile(at, path, flags, 0); }
int recordOpen2(const char *path, int flags) { return openFile(AT_FDCWD, path, flags, 0); }

int recordClose(int file) {
  std::lock_guard lock(recorder().mutex);
  recorder().files.erase(file);
  static auto call = next<int(int)>("close");
  return call(file);
}
int recordMkdir(const char *path, mode_t mode) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<int(const char *, mode_t)>("mkdir");
  return recorded(call(path, mode), [&] { recorder().make(AT_FDCWD, path, {.isFolder = true}); });
}
int recordSymlink(const char *target, const char *path) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<int(const char *, const char *)>("symlink");
  return recorded(call(target, path), [&] { recorder().make(AT_FDCWD, path, {.isLink = true, .bytes = target}); });
}
int recordUnlinkAt(int at, const char *path, int flags) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<int(int, const char *, int)>("unlinkat");
  return recorded(call(at, path, flags), [&] { recorder().remove(at, path); });
}
int recordUnlink(const char *path) { return recordUnlinkAt(AT_FDCWD, path, 0); }
int recordRmdir(const char *path) { return recordUnlinkAt(AT_FDCWD, path, AT_REMOVEDIR); }
int recordRemove(const char *path) {
  struct stat status{};
  return ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? recordRmdir(path) : recordUnlink(path);
}
int recordRename2(int from, const char *path, int to, const char *target, unsigned flags) {
  std::lock_guard lock(recorder().mutex);
  if (flags != 0 && recorder().refusesFlags)
    return errno = EINVAL, -1;
  static auto call = next<int(int, const char *, int, const char *, unsigned)>("renameat2");
  return recorded(call(from, path, to, target, flags),
                  [&] { recorder().rename(path, target, flags & RENAME_EXCHANGE); });
}
int recordRename(const char *path, const char *target) { return recordRename2(AT_FDCWD, path, AT_FDCWD, target, 0); }
ssize_t recordWrite(int file, const void *data, size_t bytes, off_t offset) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<ssize_t(int, const void *, size_t, off_t)>("pwrite");
  const ssize_t count = call(file, data, bytes, offset);
  return recorded(count, [&] {
    changeFile(file, {.kind = FileChange::Kind::write,
                      .offset = uint64_t(offset),
                      .bytes = std::string(static_cast<const char *>(data), size_t(count))});
  });
}
ssize_t recordWrite64(int file, const void *data, size_t bytes, off_t offset) {
  return recordWrite(file, data, bytes, offset);
}
int recordAllocate(int file, off_t offset, off_t bytes) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<int(int, off_t, off_t)>("posix_fallocate");
  const int error = call(file, offset, bytes);
  if (error == 0)
    changeFile(file, {.kind = FileChange::Kind::grow, .offset = uint64_t(offset + bytes)});
  return error;
}
int recordAllocate64(int file, off_t offset, off_t bytes) { return recordAllocate(file, offset, bytes); }
int recordSync(int file) {
  std::lock_guard lock(recorder().mutex);
  static auto call = next<int(int)>("fsync");
  return recorded(call(file), [&] { changeFile(file, {.kind = FileChange::Kind::synchronise}); });
}
int recordDataSync(int file) { return recordSync(file); }
