// SPDX-License-Identifier: Apache-2.0
// The ops of OptimizerOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

#define GET_OP_CLASSES
#include "ir/ops/training/OptimizerOps.h.inc"
