// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/ShyDevice.h"
#include "tests/unit/executor/TestDevice.h"

namespace dg::test {

const bool runsOnCallingThreads = false;

std::unique_ptr<Device> makeTestDevice(const KernelLibrary &library) { return makeShyDevice(library); }

} // namespace dg::test
