// SPDX-License-Identifier: Apache-2.0
// The ops of GraphOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {
class ReturnOp;
} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/structure/GraphOps.h.inc"
