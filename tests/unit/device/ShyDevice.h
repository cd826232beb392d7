// SPDX-License-Identifier: Apache-2.0
// A device for tests that lets nobody touch its memory: the addresses of its values lie in a range without any access,
// so that who dereferences one dies at once, and its work is done late, by a thread of its own, so that who does not
// wait sees old bytes. It runs the kernels of the host on a second mapping of the same memory.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/host/HostDevice.h"

namespace dg::test {

/// `library` outlives the device.
std::unique_ptr<Device> makeShyDevice(const KernelLibrary &library);
inline constexpr DeviceMaker shyDeviceMaker = {false, makeShyDevice};

} // namespace dg::test
