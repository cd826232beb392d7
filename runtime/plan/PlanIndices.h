// SPDX-License-Identifier: Apache-2.0
// The checks that make a plan safe to walk: every id exists, every list has the length that its kind asks for, loops
// nest. Reading and verifying both start with them. Private to this folder.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::plan {

/// Fails with badInput and the JSON path of the first wrong index ("plan.json: ops[12].buffers[1]: …").
Status checkIndices(const Plan &plan);

} // namespace dg::plan
