// SPDX-License-Identifier: Apache-2.0
// The passes of LayoutPasses.td.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dg::passes {

#define GEN_PASS_DECL
#include "passes/layout/LayoutPasses.h.inc"

} // namespace dg::passes
