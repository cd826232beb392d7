// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Snapshotter.h"

#include <unistd.h>

namespace dg::session {

using Clock = std::chrono::steady_clock;

Result<std::optional<checkpoint::TrainingState>> Snapshotter::restore() {
  using Found = std::optional<checkpoint::TrainingState>;
  if (!run.snapshots || !run.snapshots->from)
    return Found();
  auto state = run.snapshots->memory->restore(*run.snapshots->from, run.executor);
  if (!state)
    return state.status();
  last = run.snapshots->from;
  return Found(std::move(*state));
}

bool Snapshotter::isTime(int64_t step, bool isDue, bool isSaving) {
  if (!run.snapshots)
    return false;
  isPending = (isPending || isDue) && last != step;
  return isPending && !isSaving;
}

Status Snapshotter::take(const checkpoint::TrainingState &state) {
  const SnapshotPlace &place = *run.snapshots;
  const auto limit = Clock::now() + run.timeout;
  while (last && place.whole() != last) {
    isPeers = Clock::now() > limit;
    if (isPeers)
      return Status::error(ErrorKind::runFailed, "waited {:g} s for the snapshot of step {} of the other ranks",
                           double(run.timeout.count()) / 1000, *last);
    if (run.progress)
      run.progress->pulses.fetch_add(1, std::memory_order_relaxed);
    constexpr useconds_t pause = 50;
    ::usleep(pause);
  }
  DG_RETURN_IF_ERROR(place.memory->take(state, run.executor, last));
  last = state.step;
  isPending = false;
  place.report(state.step);
  return Status::ok();
}

} // namespace dg::session
