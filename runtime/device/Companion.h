// SPDX-License-Identifier: Apache-2.0
// What the thread that runs a step has to do beside the device's work: communications. The executor implements it; a
// device calls it between two tiles, while it waits, and where a segment has a node of the caller.
#pragma once

#include "runtime/device/Segment.h"
#include "runtime/device/StepTrace.h"
#include "runtime/support/Progress.h"

#include <atomic>
#include <chrono>

namespace dg {

/// How long the caller has had nothing to do but wait.
struct Patience {
  uint32_t spins = 0;
  uint64_t lastNs = 0;   ///< when the clock was last looked at
  uint64_t waitedNs = 0; ///< time in which this process was suspended does not count

  /// Looks at the clock.
  void count(uint64_t nowNs);
};

/// Only the thread that runs the step calls it.
class Companion {
public:
  virtual ~Companion() = default;

  /// Advances a caller-only node of run number `index`: done, pending (`awaited` is then what it waits for) or failed.
  virtual Progress advance(const Node &node, uint32_t index, uint32_t microbatch, Operation *&awaited) = 0;
  /// Advances a few open communications, in turn. Cheap when none is open.
  void pollSome() {
    if (numOpen != 0)
      pollOpen();
  }
  /// Called when there is nothing to do but wait for `awaited`: spins, later gives the core away, and checks the
  /// deadline now and then. False when it is over.
  virtual bool idle(const Operation &awaited, Patience &patience) = 0;
  /// The wait is over: nobody waits for another rank any more.
  virtual void endWait() = 0;
  bool hasFailed() const { return isFailed; }

protected:
  virtual void pollOpen() = 0;
  size_t numOpen = 0;
  bool isFailed = false;
};

/// What a step knows. Written by the calling thread before the nodes that read it are released.
struct StepContext {
  Companion &companion;
  std::atomic<uint32_t> &runningTask; ///< plan task id + 1, for those who outlive this rank
  StepTrace *trace = nullptr;
  dg_scalars scalars{};
  uint32_t microbatch = 0;
};

/// Runs a caller-only node to its end. False when a communication failed.
bool runCallerNode(const Node &node, uint32_t index, StepContext &step);

} // namespace dg
