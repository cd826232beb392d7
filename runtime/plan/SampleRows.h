// SPDX-License-Identifier: Apache-2.0
// Which results of an inference have a row for each sample: those with as many rows as the inputs have, which lie on
// the mesh as the inputs' rows do.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::plan {

/// Rows of samples that a rank is fed for one micro-batch: dimension 0 of the program's first input that has one; 0
/// where the program has no batch or no such input.
int64_t sampleRows(const Plan &plan, const Program &program);

/// Whether row i of the value belongs to sample i of its rank and micro-batch. Such a value may differ from data rank
/// to data rank; any other result is of the whole micro-batch.
bool hasSampleRows(const Plan &plan, const Program &program, const Value &value);

} // namespace dg::plan
