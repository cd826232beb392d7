// SPDX-License-Identifier: Apache-2.0
// The executor: one rank's programs on one device. Everything is resolved when it is made; a step then hands prepared
// segments to the device, starts and polls communications, and allocates, locks, logs and asks the system for nothing.
// The result has the same bits for any number of threads.
#pragma once

#include "runtime/abi/KernelAbi.h"
#include "runtime/device/Device.h"
#include "runtime/device/StepTrace.h"
#include "runtime/executor/IndexCheck.h"
#include "runtime/executor/ProgressBoard.h"
#include "runtime/plan/Plan.h"
#include "runtime/transport/Transport.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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

class Executor final : public ValueAccess {
public:
  /// Reserves the arena (in the transport's host memory, if it has one, which serves one executor), writes initial
  /// values, resolves kernels and prepares communications. `plan`, `transport` and what the options point to outlive
  /// the executor; `transport` may be null when no communication of the plan has a peer. Fails on kernels that the
  /// device lacks and on plans that `plan::verify` would refuse.
  static Result<std::unique_ptr<Executor>> create(const plan::Plan &plan, plan::Coordinates at,
                                                  std::unique_ptr<Device> device, Transport *transport,
                                                  const ExecutorOptions &options);
  ~Executor() override;
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// Runs one step of plan.programs[program] and returns when it is complete. Fails with runFailed when a peer is lost
  /// or silent for longer than the time-out, or when checkNumerics found something, and with badInput when an index was
  /// outside its table, whose message `sampleAt` completes; every later step fails with the same message. The scalars'
  /// `fault` is the executor's. One thread at a time.
  Status runStep(size_t program, const dg_scalars &scalars, const SampleAt &sampleAt = {});
  /// From the next step on this rank runs these micro-batches of plan.programs[program], from the first to the one
  /// behind the last; until then those that the plan deals to its replica. All ranks of a replica take the same.
  void takeMicrobatches(size_t program, std::array<uint32_t, 2> microbatches);
  /// How long the micro-batches of the last step took, from its beginning to the end of the last one, in which this
  /// rank waits for none of another replica. Of work that is only given to a device by then, the time to give it.
  std::chrono::nanoseconds microbatchesTime() const;
  /// Whether the failure of a step began in this rank, and not in another.
  bool hasOwnFailure() const;

  /// As ValueAccess says. What is written to an input is there from the next step on. Between steps only, by the thread
  /// that runs them.
  Status inspect(plan::ValueId value, uint32_t slot, const Use &use) const override;
  Status fill(plan::ValueId value, uint32_t slot, const Write &write) override;
  /// The value of a port on this rank's stage, if it has one.
  std::optional<plan::ValueId> findPort(size_t program, const std::string &port) const;
  /// The first bytes of a slot of a value.
  Status read(plan::ValueId value, uint32_t slot, std::span<std::byte> to) const;
  /// Where the next step finds a slot of an input, to be written between steps; the value itself where the device's
  /// memory is the host's. Null where the stage has no such input. Valid as long as the executor.
  std::byte *inputBuffer(plan::ValueId value, uint32_t slot) const;
  uint64_t arenaBytes() const;

private:
  class Implementation;
  explicit Executor(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> self;
};

} // namespace dg
