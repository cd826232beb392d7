// SPDX-License-Identifier: Apache-2.0
// What devices have in common that are given work to do by themselves, in order (streams). A segment is cut at the
// nodes of the caller into sections:
//
//   kernel kernel copy │ start │ kernel kernel │ finish │ copy kernel
//   launch             │ wait, │ launch        │ poll   │ launch         … finish(): wait
//                      │ start │               │        │
//
// Only the start of a communication waits for the device, and the end of a step: what is communicated must be there.
#pragma once

#include "runtime/device/Device.h"

namespace dg {

/// Nodes between two of the caller's, as a device has prepared them.
struct Section {
  virtual ~Section() = default;
};

class LaunchedDevice : public Device {
public:
  Status setUp(const DeviceOptions &options, StepContext &context) override;
  Status prepare(Segment &segment) final;
  bool run(const Segment &segment, uint32_t index) final;
  Status failure() const final { return failed; }

protected:
  LaunchedDevice() : Device(false) {}
  bool awaitAll() final;
  /// Set-up. The nodes, none of them the caller's, are gone afterwards.
  virtual Result<std::unique_ptr<Section>> makeSection(std::span<const Node> nodes) = 0;
  /// Starts run number `index` of a section after everything launched before it. Never waits, never allocates.
  virtual void launch(Section &section, uint32_t index, const dg_scalars &scalars) = 0;
  /// Whether everything launched is complete.
  virtual Progress poll() = 0;
  /// Why poll() said failed.
  virtual Status cause() const = 0;

private:
  bool fail(Status status);

  std::chrono::milliseconds timeout{0};
  StepContext *context = nullptr;
  Status failed = Status::ok();
};

} // namespace dg
