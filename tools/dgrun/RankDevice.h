// SPDX-License-Identifier: Apache-2.0
// Which device ranks run on. Decided when dgrun is linked: RankDevice.cpp is the host; tests link another one.
#pragma once

#include "runtime/device/host/HostDevice.h"

namespace dg::dgrun {

DeviceMaker rankDevice();

} // namespace dg::dgrun
