// SPDX-License-Identifier: Apache-2.0
// The host as a device: values in a mapped arena, kernels as functions of this process, segments run by the calling
// thread and its helpers. Nothing is launched: run() is complete when it returns.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/host/KernelLibrary.h"

namespace dg {

/// `library` outlives the device.
std::unique_ptr<Device> makeHostDevice(const KernelLibrary &library);

/// How a rank makes its device once it was forked, and what must be known of it before.
struct DeviceMaker {
  bool isHost; ///< as the device will say
  std::unique_ptr<Device> (*make)(const KernelLibrary &library);
};
inline constexpr DeviceMaker hostDeviceMaker = {true, makeHostDevice};

} // namespace dg
