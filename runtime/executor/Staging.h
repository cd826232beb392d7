// SPDX-License-Identifier: Apache-2.0
// The host memory of a rank: its values in host memory, and twins that stand in for those that transports cannot reach.
// A staged communication is
//
//   copy value → twin (device) ── start (twin) ── … ── finish ── copy twin → value (device)
//
// Each communication of a program has twins of its own. Those of a send are as many as its value has slots, since as
// many may be on the way; any other is complete before it starts again. Programs do not overlap: they share the memory.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/transport/Transport.h"

#include <map>

namespace dg {

/// Memory from the system, zeroed and page-aligned.
class HostBuffer {
public:
  HostBuffer() = default;
  HostBuffer(const HostBuffer &) = delete;
  HostBuffer &operator=(const HostBuffer &) = delete;
  ~HostBuffer();
  Status map(uint64_t bytes);
  std::span<std::byte> bytes() const { return memory; }

private:
  std::span<std::byte> memory;
};

/// Immutable once made.
class Staging {
public:
  /// Lays out the host memory of a stage: values, then twins. `isHost` as the device says it.
  Staging(const plan::Plan &plan, uint32_t stage, bool isHost);
  /// That the ranks of a host should share for this one.
  uint64_t bytes() const { return size; }
  /// Has the device reserve its arena. Takes host memory: that which the ranks of a host share if the transport has
  /// some, so that neighbours reach it, else its own, or the device's where that is the host.
  Status reserve(Device &device, Transport *transport);

  /// Whether a communication works on twins.
  bool has(plan::TaskId task) const { return twinsOf.contains(task); }
  /// The twin of what a communication reads, in run `run`, and of what it writes.
  std::byte *inputOf(plan::TaskId task, uint32_t run) const;
  std::byte *outputOf(plan::TaskId task) const;

private:
  struct Twins {
    uint64_t input = 0, stride = 0, output = 0;
    uint32_t slots = 1;
  };
  std::map<plan::TaskId, Twins> twinsOf;
  std::vector<std::pair<uint64_t, uint64_t>> seenByOthers; ///< (begin, end) of what communications reach
  uint64_t arenaBytes, valueBytes = 0, size = 0;
  HostBuffer own;
  std::byte *start = nullptr;
};

/// Where inputs of a stage that are not in host memory are written before a step: a segment copies them to the values
/// when the step begins.
class InputTwins {
public:
  Status reserve(const plan::Plan &plan, uint32_t stage, Device &device);
  /// Null if the value is no such input.
  std::byte *find(plan::ValueId value, uint32_t slot) const;
  /// The copies of one program, prepared.
  Result<Segment> feedOf(const plan::Plan &plan, const plan::Program &program, Device &device) const;

private:
  struct Twin {
    uint64_t offset = 0, stride = 0;
    uint32_t slots = 1;
  };
  std::map<plan::ValueId, Twin> twins;
  HostBuffer memory;
};

} // namespace dg
