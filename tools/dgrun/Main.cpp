// SPDX-License-Identifier: Apache-2.0
// dgrun: flags, then the libraries. It never compiles and never interprets ops.
#include "runtime/launch/link/HeldSignals.h"
#include "runtime/session/MemoryNeed.h"
#include "runtime/session/report/MemoryUse.h"
#include "runtime/support/CacheFolder.h"
#include "runtime/support/Printable.h"
#include "runtime/support/SystemMemory.h"
#include "tools/dgrun/Export.h"
#include "tools/dgrun/Flags.h"
#include "tools/dgrun/Notes.h"
#include "tools/dgrun/Prepare.h"
#include "tools/dgrun/RankDevice.h"
#include "tools/dgrun/Verify.h"
#include "tools/dgrun/Where.h"
#include "tools/host/HostCache.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

using namespace dg;

int main(int argc, char **argv) {
  uint64_t residentBytes = session::residentBytes();
  dgrun::Flags flags;
  if (auto code = dgrun::parseFlags(argc, argv, flags))
    return *code;
  std::signal(SIGPIPE, SIG_IGN); // a reader of stdout that has gone fails its report, not the training
  LaunchOptions options;
  if (flags.json)
    options.describeEvent = session::launchEventLine;
  if (flags.probe) {
    auto host = tools::probeHost();
    if (!host)
      return endBeforeRanks(options, host.status());
    if (std::fputs(partitioner::toJson(host->cluster).c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      return endBeforeRanks(
          options,
          Status::error(ErrorKind::unwritten, "--probe: standard output cannot be written: {}", std::strerror(errno)));
    const std::string folder = cacheFolder();
    Status kept = folder.empty() ? Status::error(ErrorKind::usage, "there is no folder of caches")
                                 : tools::keepHost(folder, tools::hostKey(), *host);
    fmt::print(stderr, "dgrun: {}{}\n", printable(tools::describeHost(*host)),
               kept ? "; dgc plans with it from now on" : "; not kept for dgc: " + printable(kept.message()));
    return 0;
  }
  if (!flags.verify.empty() && flags.job.empty())
    return dgrun::verifyCheckpoints(flags, nullptr, options);
  if (flags.verify.empty() && flags.exportTo.empty())
    holdSignals();
  std::optional<package::TrustedKeys> trusted;
  if (!flags.trustedKeys.empty()) {
    auto read = package::TrustedKeys::read(flags.trustedKeys);
    if (!read)
      return endBeforeRanks(options, read.status());
    trusted.emplace(std::move(*read));
  }
  auto job = session::Job::open(flags.job, flags.target, trusted ? &*trusted : nullptr);
  if (!job)
    return endBeforeRanks(options, job.status());
  if (!flags.verify.empty())
    return dgrun::verifyCheckpoints(flags, &(*job)->plan(), options);
  if (!flags.exportTo.empty())
    return dgrun::exportWeights(flags, (*job)->plan(), options);
  options.isResumable = flags.resume && !flags.evaluate && !checkpoint::namedStepsIn(flags.checkpoint).empty();
  auto where = dgrun::findWhere(flags, (*job)->plan());
  if (!where)
    return isStopAsked() ? endStopped(options) : endBeforeRanks(options, where.status());
  if (Status status = (*job)->replicate(where->replicas); !status)
    return endBeforeRanks(options, status);
  // Taken before anything in the folder is read: what another run is writing there cannot be judged.
  std::optional<checkpoint::FolderLock> lock;
  if (where->node == 0 && !flags.checkpoint.empty() && !flags.dryRun) {
    auto taken = checkpoint::FolderLock::take(flags.checkpoint);
    if (!taken)
      return endBeforeRanks(options, taken.status());
    lock.emplace(std::move(*taken));
    if (!lock->replaced().empty())
      fmt::print(stderr, "dgrun: note: {} ended without releasing {}; its lock is replaced\n", lock->replaced(),
                 printable(flags.checkpoint));
    checkpoint::removeUnfinished(flags.checkpoint); // nobody else can own it now
  }
  auto assignment = dgrun::prepare(flags, **job, *where);
  if (!assignment)
    return isStopAsked() ? endStopped(options) : endBeforeRanks(options, assignment.status());
  if (lock)
    if (Status status = dgrun::claimFolder(*lock, *assignment); !status)
      return endBeforeRanks(options, status);
  assignment->residentBytes = residentBytes;
  assignment->device = dgrun::rankDevice();
  if (assignment->device.isHost)
    if (Status fits = session::checkMemoryNeed((*job)->plan(), assignment->ranksOnHost, totalMemoryBytes()); !fits)
      return endBeforeRanks(options, fits);
  if (where->node == 0)
    for (const std::string &note : dgrun::notesOn(flags, *assignment))
      fmt::print(stderr, "dgrun: note: {}\n", printable(note));
  const plan::Plan &plan = session::planOf(*assignment);
  options.numRanks = plan.mesh.numRanks();
  options.timeout = assignment->timeout;
  options.describeTask = [&](uint32_t task) {
    return task < plan.tasks.size() ? fmt::format("'{}' ({})", plan.tasks[task].name, plan.tasks[task].source) : "";
  };
  const bool isFirstNode = where->node == 0;
  options.onBadEnd = [&] { session::removeUnfinished(*assignment, isFirstNode); };
  if (flags.saveSeconds)
    options.saveTime = std::chrono::milliseconds(int64_t(std::min(*flags.saveSeconds, 1e9) * 1000));
  options.savesOnInterrupt = assignment->training && !assignment->training->checkpointDirectory.empty();
  options.isResumable = options.savesOnInterrupt && assignment->resume;
  options.maxRestarts = assignment->maxRestarts;
  options.firstStep = assignment->resume ? assignment->resume->state().step : 0;
  options.snapshotBytes = [&](int64_t rank) { return session::snapshotBytes(*assignment, rank); };
  options.latestCheckpoint = [&] { return session::latestCheckpoint(*assignment); };
  options.onRestart = [&](const RestartPoint &point) { return session::restartAt(*assignment, point); };
  options.onFailure = flags.onFailure;
  if (isStopAsked())
    return endStopped(options);
  int code = dgrun::launch(std::move(*where), flags, std::move(options), dgrun::describeRun(*assignment),
                           [&](RankContext &context) { return session::runRank(context, *assignment); });
  if (std::string saved = dgrun::describeSaved(*assignment, code); isFirstNode && !saved.empty())
    fmt::print(stderr, "dgrun: {}\n", saved);
  return code;
}
