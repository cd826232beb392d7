// SPDX-License-Identifier: Apache-2.0
// Linked into a dgrun for tests, in place of tools/dgrun/RankDevice.cpp.
#include "tools/dgrun/RankDevice.h"

#include "tests/unit/device/ShyDevice.h"

namespace dg::dgrun {

DeviceMaker rankDevice() { return test::shyDeviceMaker; }

} // namespace dg::dgrun
