// SPDX-License-Identifier: Apache-2.0
// Every transformation of dg modules. Pass order lives in Pipeline.cpp.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace dg::passes {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Makes every pass available by its flag (dg-opt).
void registerPasses();

} // namespace dg::passes
