// SPDX-License-Identifier: Apache-2.0
// The birth of a rank: everything between fork and the rank's own code.
#pragma once

#include "runtime/launch/link/KeptMemory.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/SharedBoard.h"
#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/support/Sha256.h"

#include <csignal>
#include <sys/types.h>
#include <vector>

namespace dg {

/// What a forked process needs to become a rank. Descriptors of -1 are inherited from the launcher.
struct RankProcess {
  int64_t rank = 0;
  int64_t localIndex = 0; ///< among the ranks of this launcher
  const RankPlacement *placement = nullptr;
  pid_t launcher = 0;
  int socket = -1, output = -1, error = -1;
  std::vector<int> foreign; ///< the launcher's descriptors, to be closed here
  sigset_t signalMask = {}; ///< the launcher's, from before it blocked anything
  SharedBoard *board = nullptr;
  KeptMemory *kept = nullptr; ///< may be null
  std::vector<Digest> keys;   ///< towards each rank, where hosts do not trust the network
};

/// Runs in the child and never returns: dies with the launcher, ignores Ctrl-C (the launcher handles it), turns SIGTERM
/// into a request to stop, sets RANK, WORLD_SIZE and LOCAL_RANK, and ends with what rankMain returns. No destructor or
/// atexit handler of the launcher runs.
[[noreturn]] void runRankProcess(const RankProcess &process, const RankMain &rankMain);

/// For a signal handler of a rank, where its transport has ended by that signal because another rank is gone: says so
/// on the board, and waits there until the launcher ends the rank. What the others see of this rank does not change.
[[noreturn]] void outliveTransport(int signal);

} // namespace dg
