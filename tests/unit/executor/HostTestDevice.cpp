// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/HostDevice.h"
#include "tests/unit/executor/TestDevice.h"

namespace dg::test {

const bool runsOnCallingThreads = true;

std::unique_ptr<Device> makeTestDevice(const KernelLibrary &library) { return makeHostDevice(library); }

} // namespace dg::test
