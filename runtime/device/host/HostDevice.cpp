// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/HostDevice.h"

#include "runtime/device/host/Arena.h"
#include "runtime/device/host/SegmentRunner.h"
#include "runtime/device/host/WorkerTeam.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace dg {

namespace {

class HostDevice final : public Device {
public:
  explicit HostDevice(const KernelLibrary &library) : Device(true), library(library) {}

  Status reserve(uint64_t bytes, std::span<std::byte> mapped) override;
  Status setUp(const DeviceOptions &given, StepContext &context) override;
  bool findKernel(const std::string &symbol, Node &node) override;
  Status prepare(Segment &segment) override;

  void beginStep() override { team->beginStep(); }
  bool run(const Segment &segment, uint32_t index) override {
    if (segment.prepared)
      return context->trace ? tracedRunner->run(segment, index) : sharedRunner->run(segment, index);
    return context->trace ? runInOrder<true>(segment, index, *context) : runInOrder<false>(segment, index, *context);
  }
  void endStep() override { team->endStep(); }
  void stop() override {
    if (team)
      team->stop();
  }

private:
  Status copyToHost(void *to, const std::byte *from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
    return Status::ok();
  }
  Status copyFromHost(std::byte *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Status::ok();
  }
  bool isWorthSharing(const Segment &segment) const;

  const KernelLibrary &library;
  Arena arena;
  DeviceOptions options;
  StepContext *context = nullptr;
  std::unique_ptr<SharedRunner<false>> sharedRunner;
  std::unique_ptr<SharedRunner<true>> tracedRunner;
  std::unique_ptr<WorkerTeam> team; ///< last: its threads use all of the above
};

Status HostDevice::reserve(uint64_t bytes, std::span<std::byte> mapped) {
  if (mapped.empty()) {
    Result<Arena> made = Arena::map(bytes);
    if (!made)
      return made.status();
    arena = std::move(*made);
  }
  base = hostBase = mapped.empty() ? arena.data() : mapped.data();
  size = mapped.empty() ? arena.bytes() : bytes;
  return Status::ok();
}

Status HostDevice::setUp(const DeviceOptions &given, StepContext &stepContext) {
  options = given;
  context = &stepContext;
  if (options.threads <= 1)
    return Status::ok();
  WorkSource *source = nullptr;
  if (context->trace)
    source = (tracedRunner = std::make_unique<SharedRunner<true>>(*context)).get();
  else
    source = (sharedRunner = std::make_unique<SharedRunner<false>>(*context)).get();
  Result<std::unique_ptr<WorkerTeam>> made = WorkerTeam::create(options.threads, *source);
  if (!made)
    return made.status();
  team = std::move(*made);
  return Status::ok();
}

bool HostDevice::findKernel(const std::string &symbol, Node &node) {
  node.kernel = library.find(symbol);
  node.tiles = library.tilesOf(symbol).value_or(0);
  return node.kernel && node.tiles > 0;
}

/// While a communication is under way, another thread can go on.
bool HostDevice::isWorthSharing(const Segment &segment) const {
  double work = std::accumulate(segment.costs.begin(), segment.costs.end(), 0.0);
  bool communicates = std::any_of(segment.nodes.begin(), segment.nodes.end(), std::mem_fn(&Node::isCallerOnly));
  return !segment.nodes.empty() && (communicates || work >= options.leastSharedWorkNs);
}

Status HostDevice::prepare(Segment &segment) {
  if (team && isWorthSharing(segment))
    segment.prepared = std::make_unique<SharedSegment>(segment, options.threads);
  return Status::ok();
}

} // namespace

std::unique_ptr<Device> makeHostDevice(const KernelLibrary &library) { return std::make_unique<HostDevice>(library); }

} // namespace dg
