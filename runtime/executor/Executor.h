// SPDX-License-Identifier: Apache-2.0
// The executor: one rank's programs over one arena. Everything is resolved when it is made; a step then calls kernels
// through tables of pointers, starts and polls communications, and allocates, locks, logs and asks the system for
// nothing. The result has the same bits for any number of threads.
#pragma once

#include "runtime/abi/KernelAbi.h"
#include "runtime/device/StepTrace.h"
#include "runtime/device/host/KernelLibrary.h"
#include "runtime/executor/ProgressBoard.h"
#include "runtime/plan/Plan.h"
#include "runtime/transport/Transport.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace dg {

struct ExecutorOptions {
  uint32_t threads = 1;                      ///< the calling thread included
  std::chrono::milliseconds timeout{30'000}; ///< of one wait for another rank
  bool sharesCore = false;                   ///< with other ranks, which have work while this one waits
  /// A segment without communication whose work is less, by the plan's flops and bytes, runs on the calling thread: to
  /// share it costs more than helpers give.
  std::chrono::nanoseconds leastSharedWork{30'000};
  uint64_t seed = 0;                ///< of initial values
  ProgressLine *progress = nullptr; ///< updated while a step runs; may be null
  StepTrace *trace = nullptr;       ///< filled by every step; may be null
  bool checkNumerics = false; ///< stop at the first task that makes a NaN or infinity; runs on the calling thread alone
  /// The global tensor of a value that starts from a file, by its name. Called by create only.
  std::function<Result<std::span<const std::byte>>(const std::string &name)> initialTensor;
};

class Executor {
public:
  /// Maps the arena (in the transport's host memory, if it has one, which serves one executor), writes initial values,
  /// resolves kernels and prepares communications. `plan`, `library`, `transport` and what the options point to outlive
  /// the executor; `transport` may be null when no communication of the plan has a peer. Fails on kernels that the
  /// library lacks and on plans that `plan::verify` would refuse.
  static Result<std::unique_ptr<Executor>> create(const plan::Plan &plan, plan::Coordinates at,
                                                  const KernelLibrary &library, Transport *transport,
                                                  const ExecutorOptions &options);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// Runs one step of plan.programs[program] and returns when it is complete. Fails with runFailed when a peer is lost
  /// or silent for longer than the time-out, or when checkNumerics found something; every later step fails with the
  /// same message. One thread at a time.
  Status runStep(size_t program, const dg_scalars &scalars);
  /// Whether the failure of a step began in this rank, and not in another.
  bool hasOwnFailure() const;

  /// The bytes of a port's value for one micro-batch (slot % slots), or null if this rank's stage has none. Between
  /// steps only.
  std::byte *portData(size_t program, const std::string &port, uint32_t slot = 0) const;
  /// The bytes of a value of this stage, or null if it belongs to another. Between steps only.
  std::byte *valueData(plan::ValueId value, uint32_t slot = 0) const;
  uint64_t arenaBytes() const;

private:
  class Implementation;
  explicit Executor(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> self;
};

} // namespace dg
