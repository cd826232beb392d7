// SPDX-License-Identifier: Apache-2.0
// What passes that rewrite scans leave behind them is pruned.
// Pattern of ScanOp: it is pruned.
#pragma once

#include "ir/ops/structure/ControlOps.h"

namespace dg::passes {

/// Replaces the scan by one without what nobody reads: results, ops of its body, and operands that only these need.
void pruneScan(ir::ScanOp scan);

} // namespace dg::passes
