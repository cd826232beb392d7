// SPDX-License-Identifier: Apache-2.0
// The ops of LossOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

#define GET_OP_CLASSES
#include "ir/ops/training/LossOps.h.inc"
