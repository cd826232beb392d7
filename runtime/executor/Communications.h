// SPDX-License-Identifier: Apache-2.0
// The communications of a rank while steps run: which are open, how they are polled, how long they may take, and what
// is said when one fails. Only the thread that calls Executor::runStep comes here.
#pragma once

#include "runtime/device/Companion.h"
#include "runtime/device/StepTrace.h"
#include "runtime/executor/ProgressBoard.h"
#include "runtime/plan/Plan.h"
#include "runtime/transport/collectives/Collectives.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dg {

/// One prepared communication. A send has one for each slot of its value, so that several micro-batches can be on the
/// way; every other communication is complete at its finish task and needs only one.
struct Operation {
  static constexpr uint32_t closed = UINT32_MAX;
  std::unique_ptr<Communication> communication;
  plan::TaskId task = 0;
  int64_t firstPeer = 0;
  std::string peers; ///< "rank 1" or "one of ranks 0, 2": for words, when it is not known whom it waits for
  uint32_t openPosition = closed; ///< in Communications' list
  uint32_t microbatch = 0;        ///< of the last start
  uint64_t startNs = 0;           ///< of the last start, when traced
  bool isOpen() const { return openPosition != closed; }
};

class Communications final : public Companion {
public:
  /// A wait spins `spinsBeforeYield` times before it gives its core away.
  Communications(const plan::Plan &plan, int64_t rank, std::chrono::milliseconds timeout, uint32_t spinsBeforeYield,
                 ProgressLine &progress, StepTrace *trace)
      : plan(plan), rank(rank), timeout(timeout), spinsBeforeYield(spinsBeforeYield), progress(progress), trace(trace) {
  }

  /// Set-up: takes the communication of `task` with these ranks. The address stays valid.
  Operation *add(plan::TaskId task, std::unique_ptr<Communication> communication, int64_t firstPeer, std::string peers);

  void beginStep(int64_t number) { step = number; }
  /// On failed, failure() says why.
  Progress advance(const Node &node, uint32_t index, uint32_t microbatch, Operation *&awaited) override;
  /// When it is over, failure() says so.
  bool idle(const Operation &awaited, Patience &patience) override;
  void endWait() override { progress.waitingFor.store(0, std::memory_order_relaxed); }
  /// Polls until nothing is open. False on failure.
  bool finishAll();

  const Status &failure() const { return failed; }

private:
  /// Makes progress and advances a few open operations, in turn; from time to time all. A failure is kept in failure().
  void pollOpen() override;
  /// Makes progress and advances one operation; done also when it was not open.
  Progress poll(Operation &operation);
  void fail(Status status);
  void start(Operation &operation, void *input, void *output, uint32_t microbatch);
  Progress goOn(Operation &operation);
  void close(Operation &operation);
  /// What has moved between this rank and the one that the operation waits for.
  uint64_t activityOf(const Operation &operation) const;
  std::string describe(const Operation &operation) const;
  static std::string peerOf(const Operation &operation);

  const plan::Plan &plan;
  const int64_t rank;
  const std::chrono::milliseconds timeout;
  const uint32_t spinsBeforeYield;
  ProgressLine &progress;
  StepTrace *const trace;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<Operation *> open; ///< capacity for all of them
  size_t nextToPoll = 0;
  Transport *messages = nullptr; ///< whose progress the open operations need; null where all share memory
  uint64_t lastSweepNs = 0;      ///< when all were advanced
  int64_t step = 0;
  uint64_t lastActivity = 0; ///< of whom the present wait is for
  Status failed = Status::ok();
};

} // namespace dg
