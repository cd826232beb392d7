// SPDX-License-Identifier: Apache-2.0
// Brings the loss of each step, and the norm of its gradients, from the pipeline stage that computes them to rank 0,
// which reports them, as messages of a few bytes that nobody waits for: rank 0 may be some steps behind with its
// report.
#pragma once

#include "runtime/executor/ProgressBoard.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/report/Reporter.h"
#include "runtime/transport/Transport.h"

#include <array>
#include <chrono>
#include <functional>

namespace dg::session {

/// Every rank has one and calls it alike; only rank 0 and the source act. Calls come between steps, from the thread
/// that runs them.
class LossChannel {
public:
  /// Called on rank 0, in order of steps.
  using OnStep = std::function<void(const StepInfo &)>;

  /// The source is the lowest rank of the stage that has the loss. `transport` may be null if that is rank 0.
  /// `progress` (may be null) is told of waits.
  LossChannel(const plan::Plan &plan, int64_t rank, Transport *transport, std::chrono::milliseconds timeout,
              OnStep onStep, ProgressLine *progress = nullptr);
  /// Open requests are given up.
  ~LossChannel();
  LossChannel(const LossChannel &) = delete;
  LossChannel &operator=(const LossChannel &) = delete;

  bool isSource() const { return rank == source; }
  /// After each step. `info.loss` and the value of `info.gradientNorm` count on the source, the rest on rank 0. Does
  /// not block unless many steps are open.
  Status push(const StepInfo &info);
  /// Returns when rank 0 has reported every step that was pushed.
  Status drain();

private:
  static constexpr size_t depth = 32;
  struct Slot {
    StepInfo info;
    std::array<float, 2> numbers = {}; ///< that travel: loss and norm
    Transport::Request request = 0;
  };
  /// Ends the oldest open request; waits for it if `wait`. Sets `moved` if there was one to end.
  Status retire(bool wait, bool &moved);
  Status await(Transport::Request request);
  int64_t rank, source;
  Transport *transport;
  std::chrono::milliseconds timeout;
  OnStep onStep;
  ProgressLine *progress;
  std::array<Slot, depth> slots;
  uint64_t opened = 0, retired = 0; ///< slots opened % depth … are in use
};

} // namespace dg::session
