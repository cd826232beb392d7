// SPDX-License-Identifier: Apache-2.0
// Scans whose bodies treat each row (each sequence of a batch) by itself: products with packed weights and elementwise
// ops. One tile runs all trips for some rows, and nothing but products, states and results reaches memory.
#pragma once

#include "codegen/emit/KernelBuilder.h"
#include "ir/ops/structure/ControlOps.h"

namespace dg::codegen {

/// Whether emitRowScan can write the scan; else its kernel calls those of its body.
bool isRowScan(ir::ScanOp scan);

/// Writes the kernel of such a scan.
void emitRowScan(KernelBuilder &kernel, ir::ScanOp scan);

} // namespace dg::codegen
