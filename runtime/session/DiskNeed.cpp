// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DiskNeed.h"

#include "runtime/checkpoint/Retention.h"

#include <algorithm>

namespace dg::session {

/// Checkpoints that lie in the folder at once, those that are there already not counted. At most: a best one is
/// written whenever an evaluation is better, which nobody knows before.
static int64_t mostCheckpoints(const TrainingOptions &options, int64_t perEpoch, int64_t doneSteps) {
  const int64_t lastStep = options.steps > 0 ? options.steps : options.epochs * perEpoch;
  auto timesOf = [&](const Interval &every) {
    const int64_t between = every.steps > 0 ? every.steps : every.epochs * perEpoch;
    return between > 0 ? lastStep / between - doneSteps / between : 0;
  };
  int64_t count = std::max<int64_t>(timesOf(options.checkpointEvery), 0) + 1;
  if (options.keepBest)
    count += std::max<int64_t>(timesOf(options.evalEvery), 0);
  // A new one is written before the oldest is removed.
  return options.keep > 0 ? std::min(count, options.keep + (options.keepBest ? 2 : 1)) : count;
}

static std::string describeBytes(uint64_t bytes) {
  const double megabytes = double(bytes) / 1e6;
  return megabytes < 1000 ? fmt::format("{:.4g} MB", megabytes) : fmt::format("{:.4g} GB", megabytes / 1000);
}

std::string describeDiskNeed(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples,
                             int64_t doneSteps) {
  if (options.checkpointDirectory.empty())
    return "";
  const int64_t perEpoch = std::max<int64_t>(stepsPerEpoch(plan, options, numSamples), 1);
  const auto count = uint64_t(mostCheckpoints(options, perEpoch, doneSteps));
  const uint64_t one = checkpoint::bytesNeeded(plan);
  auto free = checkpoint::bytesFree(options.checkpointDirectory);
  if (!free || count <= *free / std::max<uint64_t>(one, 1))
    return "";
  return fmt::format("--checkpoint {}: up to {} checkpoint{} of {} will be written, but {} are free there; make room, "
                     "choose another folder{}",
                     options.checkpointDirectory, count, count == 1 ? "" : "s", describeBytes(one),
                     describeBytes(*free), options.keep == 0 && count > 2 ? ", or give --keep" : "");
}

} // namespace dg::session
