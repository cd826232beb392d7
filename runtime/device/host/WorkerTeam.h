// SPDX-License-Identifier: Apache-2.0
// The threads that help the calling one, lent by oneTBB. They join when a step begins and spin for work until it ends,
// and a little longer, so that steps that follow each other closely find them awake. Nobody ever waits for a helper to
// arrive: the calling thread alone can finish any step.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>

namespace dg {

/// What helpers do.
class WorkSource {
public:
  virtual ~WorkSource() = default;
  /// Does some of the work that is there; false when there was none. Called by helpers, `lane` from 1.
  virtual bool runSome(uint32_t lane) = 0;
};

class WorkerTeam {
public:
  /// `threads` includes the calling thread. `source` outlives the team.
  static Result<std::unique_ptr<WorkerTeam>> create(uint32_t threads, WorkSource &source);
  ~WorkerTeam();

  /// Calls helpers in; costs two atomic accesses when all are still there.
  void beginStep();
  /// Lets them go.
  void endStep();
  /// Returns when no helper is at work any more; none comes again.
  void stop();

private:
  struct State;
  explicit WorkerTeam(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace dg
