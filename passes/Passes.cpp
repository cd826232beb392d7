// SPDX-License-Identifier: Apache-2.0
#include "passes/Passes.h"

#include "ir/dialect/Dialect.h"

namespace dg::passes {

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace

void registerPasses() { registerDgPasses(); }

} // namespace dg::passes
