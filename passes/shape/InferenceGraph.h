// SPDX-License-Identifier: Apache-2.0
// Inference of a model that only says how it is trained.
#pragma once

#include "ir/ops/structure/GraphOps.h"

namespace dg::passes {

/// Makes @forward of @loss: returns what the loss compares with its target, under its own name, and forgets the inputs
/// that nothing reads any more. The module gets a new graph. Emits an error on the return where no loss op made what it
/// returns first.
mlir::FailureOr<ir::GraphOp> deriveForward(ir::GraphOp loss);

} // namespace dg::passes
