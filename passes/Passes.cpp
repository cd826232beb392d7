// SPDX-License-Identifier: Apache-2.0
#include "passes/Passes.h"
#include "passes/LayoutPasses.h"

#include "ir/Dialect.h"

namespace dg::passes {

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/LayoutPasses.h.inc"
} // namespace

void registerPasses() {
  registerDgPasses();
  registerDgLayoutPasses();
}

} // namespace dg::passes
