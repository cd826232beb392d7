// SPDX-License-Identifier: Apache-2.0
// A file system that remembers: every call by which this process changes files below one folder, in order, and from it
// every state that a crash could leave on the disk. The calls are those of the C library, which RecordedFiles.cpp
// stands in front of, so that code is recorded as it is, std::filesystem too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace dg::test {

/// A tree of files as it could lie on a disk. Nodes keep their numbers when their names change.
struct FileTree {
  struct Node {
    bool isFolder = false, isLink = false;
    std::string bytes = {}; ///< a link's target
    std::map<std::string, uint32_t> names = {};
  };
  std::map<uint32_t, Node> nodes = {{0, {.isFolder = true}}}; ///< 0: the folder itself

  /// The node of "a/b", or nothing: `found` is then false.
  uint32_t find(const std::string &path, bool &found) const;
  /// Every file that has a path, with its bytes: what two equal trees have in common.
  std::string describe() const;
  void makeAt(const std::string &folder) const;
  static FileTree read(const std::string &folder);
};

/// One change, or a promise that changes are on the disk.
struct FileChange {
  enum class Kind { make, write, grow, remove, rename, exchange, synchronise, note } kind;
  uint32_t node = 0;    ///< made, written, synchronised
  uint32_t folder = 0;  ///< where a name changes
  std::string name, to; ///< in that folder
  FileTree::Node made;  ///< make
  uint64_t offset = 0;  ///< write; the size of grow; the number of a note
  std::string bytes;    ///< write
};

/// Recording is of one folder at a time, for all threads.
void beginRecording(const std::string &folder);
/// A mark in the order of changes.
void note(uint64_t number);
std::vector<FileChange> endRecording();
/// renameat2 knows no flags while it is true, as over NFS.
void refuseRenameFlags(bool refuse);

/// Every state of the folder that a crash may leave, each distinct one once for each `lastNote` (0: none before it):
/// after each number of changes, with every subset of those that nothing had promised, where they are few, else of
/// random ones. A write may be on the disk by blocks of 4 KiB. `use` says whether to go on. Returns how many states
/// were looked at, equal ones too.
size_t forEachCrash(const std::vector<FileChange> &changes, std::mt19937_64 &random,
                    const std::function<bool(const FileTree &, uint64_t lastNote)> &use);

/// All of them, in order.
FileTree applyAll(const std::vector<FileChange> &changes);

} // namespace dg::test
