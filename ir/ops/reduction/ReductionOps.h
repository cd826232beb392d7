// SPDX-License-Identifier: Apache-2.0
// The ops of ReductionOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

#define GET_OP_CLASSES
#include "ir/ops/reduction/ReductionOps.h.inc"
