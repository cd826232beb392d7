// SPDX-License-Identifier: Apache-2.0
// The op of LiteralOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

#define GET_OP_CLASSES
#include "ir/ops/structure/LiteralOps.h.inc"
