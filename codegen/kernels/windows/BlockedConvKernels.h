// SPDX-License-Identifier: Apache-2.0
// The kernel of dg.blocked_conv, a row of the table beside those of the other convolutions.
#pragma once

#include "codegen/kernels/KernelTable.h"

namespace dg::codegen {

void addBlockedConvKernels(KernelTable &table);

} // namespace dg::codegen
