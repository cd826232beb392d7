// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/RankDevice.h"

namespace dg::dgrun {

DeviceMaker rankDevice() { return hostDeviceMaker; }

} // namespace dg::dgrun
