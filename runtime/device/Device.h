// SPDX-License-Identifier: Apache-2.0
// The device seam: where a rank's values lie and what runs its kernels. One device serves one executor.
//
//   set-up     reserve ─ registerStaging ─ setUp ─ findKernel, prepare for each segment
//   a step     (beginStep) ─ run for each segment, in order ─ (finish) ─ (endStep)
//   between    inspect, fill, read
//
// A device may run a segment while run() is called (host) or only launch it (cuda): run() returns when the nodes of the
// caller are complete and the rest is complete or under way, in order. finish() waits for all of it.
// Who is neither a device nor a kernel never dereferences an address of a device. The one exception are transports,
// which are given addresses of values where isHostMemory() says that they may have them; otherwise the executor gives
// them twins of values in staging memory, and segments have the copies (see runtime/executor/Staging.h).
// All methods are called by one thread, the one that runs steps.
#pragma once

#include "runtime/device/Companion.h"
#include "runtime/device/Segment.h"
#include "runtime/device/ValueAccess.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>

namespace dg {

struct DeviceOptions {
  uint32_t threads = 1;                      ///< the calling thread included; for devices that run on them
  double leastSharedWorkNs = 0;              ///< of a segment that threads share
  std::chrono::milliseconds timeout{30'000}; ///< of one wait for launched work
};

/// Whether transports and neighbours on this host can read and write a value in place: any value of the host, on
/// another device those in host or pinned memory.
inline bool isHostMemory(const plan::Value &value, bool isHost) {
  return isHost || value.space != plan::MemorySpace::device;
}

class Device {
public:
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Whether its own memory is the host's, and run() is complete when it returns.
  const bool isHost;
  bool isHostMemory(const plan::Value &value) const { return dg::isHostMemory(value, isHost); }

  /// Reserves the arena of a stage, `bytes` zeroed bytes. `mapped` is for the values in host memory: zeroed, as long as
  /// they reach, seen by neighbours too; it outlives the device. Empty: there are none, or the host makes its own.
  virtual Status reserve(uint64_t bytes, std::span<std::byte> mapped) = 0;
  /// Says that nodes will copy to and from this host memory (a device may pin it). It outlives the device's last step.
  virtual Status registerStaging(std::span<std::byte>) { return Status::ok(); }
  /// Makes ready for steps; `context` outlives the device's last step.
  virtual Status setUp(const DeviceOptions &options, StepContext &context) = 0;
  /// Resolves what a kernel node calls, and its tiles. False when there is no kernel of that name.
  virtual bool findKernel(const std::string &symbol, Node &node) = 0;
  /// Makes a segment ready to be run; fills segment.prepared if the device needs it.
  virtual Status prepare(Segment &segment) = 0;

  uint64_t arenaBytes() const { return size; }
  /// The device address of slot `slot % slots` of a value of this stage. For nodes; not to be dereferenced.
  std::byte *addressOf(const plan::Value &value, uint64_t slot = 0) const {
    return (isHostMemory(value) ? hostBase : base) + value.offset +
           (value.slots > 1 ? slot % value.slots * value.stride : 0);
  }

  /// Between steps, or after finish(). As ValueAccess has them; in place where values are in host memory, else through
  /// a copy.
  Status inspect(const plan::Value &value, uint32_t slot, const ValueAccess::Use &use) const;
  Status fill(const plan::Value &value, uint32_t slot, const ValueAccess::Write &write);
  /// The first to.size() bytes of a slot.
  Status read(const plan::Value &value, uint32_t slot, std::span<std::byte> to) const;

  /// Called only in steps of programs some segment of which the device has prepared something for; so is endStep.
  virtual void beginStep() {}
  /// Runs or launches run number `index` of a segment. False when a communication failed, or failure() says what.
  virtual bool run(const Segment &segment, uint32_t index) = 0;
  /// Returns when everything launched is complete. False as run().
  bool finish() { return isHost || awaitAll(); }
  virtual void endStep() {}
  /// Returns when nothing touches memory any more; no step follows. Call it before segments are destroyed.
  virtual void stop() = 0;
  /// Why work of this device failed; ok as long as none did.
  virtual Status failure() const { return Status::ok(); }

protected:
  explicit Device(bool isHost) : isHost(isHost) {}
  /// Returns when everything launched is complete. False as run().
  virtual bool awaitAll() { return true; }
  /// Copies that are complete when they return.
  virtual Status copyToHost(void *to, const std::byte *from, size_t bytes) const = 0;
  virtual Status copyFromHost(std::byte *to, const void *from, size_t bytes) = 0;

  std::byte *base = nullptr;     ///< of the arena: a device address
  std::byte *hostBase = nullptr; ///< of the values in host memory
  uint64_t size = 0;
};

} // namespace dg
