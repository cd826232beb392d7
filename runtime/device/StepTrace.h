// SPDX-License-Identifier: Apache-2.0
// When each task of the last step ran and on which thread, for --trace. Space is reserved at set-up; without a trace
// the executor runs code that has no trace in it.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace dg {

struct TraceEvent {
  uint64_t startNs = 0, endNs = 0; ///< of the steady clock
  plan::TaskId task = 0;
  uint32_t microbatch = 0;
  uint32_t tiles = 0;     ///< how many of the task's tiles this thread ran
  uint32_t taskTiles = 1; ///< how many the task has
};

/// One lane for each thread (0 is the calling one) and a last one for communications, from their start to the moment
/// their end was seen. Written by runStep; to be read and cleared between steps, by the thread that calls runStep.
class StepTrace {
public:
  /// Called by Executor::create.
  void prepare(uint32_t numThreads, size_t eventsPerLane) {
    lanes.resize(numThreads + 1);
    for (Lane &lane : lanes)
      lane.events.reserve(eventsPerLane);
  }
  void clear() {
    for (Lane &lane : lanes)
      lane.events.clear(), lane.dropped = 0;
  }
  size_t numLanes() const { return lanes.size(); }
  size_t communicationLane() const { return lanes.size() - 1; }
  const std::vector<TraceEvent> &events(size_t lane) const { return lanes[lane].events; }
  /// Events that found the lane full.
  uint64_t dropped(size_t lane) const { return lanes[lane].dropped; }

  /// Never allocates.
  void record(size_t lane, const TraceEvent &event) {
    Lane &to = lanes[lane];
    if (to.events.size() < to.events.capacity())
      to.events.push_back(event);
    else
      ++to.dropped;
  }

private:
  struct alignas(64) Lane {
    std::vector<TraceEvent> events;
    uint64_t dropped = 0;
  };
  std::vector<Lane> lanes;
};

} // namespace dg
