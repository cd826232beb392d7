// SPDX-License-Identifier: Apache-2.0
#include "passes/Passes.h"
#include "passes/layout/LayoutPasses.h"

#include "ir/dialect/Dialect.h"

namespace dg::passes {

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/layout/LayoutPasses.h.inc"
} // namespace

void registerPasses() {
  registerDgPasses();
  registerDgLayoutPasses();
}

} // namespace dg::passes
