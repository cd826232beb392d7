// SPDX-License-Identifier: Apache-2.0
// The device that the tests of this folder run on: each is built twice, once with each definition.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/host/KernelLibrary.h"

namespace dg::test {

/// Whether segments are run by the calling thread and its helpers.
extern const bool runsOnCallingThreads;
std::unique_ptr<Device> makeTestDevice(const KernelLibrary &library);

} // namespace dg::test
