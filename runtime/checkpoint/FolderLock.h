// SPDX-License-Identifier: Apache-2.0
// One run at a time writes into a folder of checkpoints. The lock is a file DIR/run.lock that says who: host, process
// and run. It is made by link(), which NFS does in one step, and holds no kernel lock.
#pragma once

#include "runtime/support/Status.h"

#include <string>

#include <sys/types.h>

namespace dg::checkpoint {

inline constexpr const char *lockName = "run.lock";

/// Whether the folder's lock is still that of `run`. Asked before each rename: a run that was taken for dead, or whose
/// lock somebody removed, must not write between the checkpoints of its successor. Fails with runFailed and who has it.
Status checkFence(const std::string &directory, const std::string &run);

/// Held from its making to its end, by the process that made it; a forked child does not release it.
class FolderLock {
public:
  /// Makes the folder if it is missing, and locks it for this process. A lock whose process is gone from this host is
  /// replaced, and `replaced` says whose it was. Fails (usage) with who holds it, since when and what to do, also where
  /// the folder cannot be made or written.
  static Result<FolderLock> take(const std::string &directory);

  FolderLock(FolderLock &&other) noexcept;
  FolderLock &operator=(FolderLock &&) = delete;
  ~FolderLock();

  /// A random name of this run, the fencing id of its writes.
  const std::string &run() const { return id; }
  /// Of the lock that was stale: "run … of process …"; empty if there was none.
  const std::string &replaced() const { return stale; }

private:
  FolderLock() = default;
  std::string directory, id, stale;
  pid_t owner = 0;
  bool hasMadeFolder = false;
};

} // namespace dg::checkpoint
