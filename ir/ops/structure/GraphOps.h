// SPDX-License-Identifier: Apache-2.0
// The ops of GraphOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {
class ReturnOp;
} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/structure/GraphOps.h.inc"

namespace dg::ir {
/// Whether a result of the graph belongs to one micro-batch, as those of an inference and what has a row for each
/// sample; the others of training and evaluation, loss and accuracy, are sums over the step.
bool isOfMicrobatch(GraphOp graph, mlir::Value result);
} // namespace dg::ir
