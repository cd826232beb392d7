// SPDX-License-Identifier: Apache-2.0
// The one addition of DG's reductions: element by element, ((in0 + in1) + in2) + …, whatever the route of the data.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>

namespace dg {

/// output[i] = ((inputs[0][i] + inputs[1][i]) + …) for each of the outputs, numInputs and numOutputs >= 1. An output
/// may be one of the inputs; other overlaps are not allowed. bf16 and f16 are added in f32 and rounded once, at the
/// end; integers wrap.
using SumInOrder = void (*)(void *const *outputs, size_t numOutputs, const void *const *inputs, size_t numInputs,
                            size_t count);

/// The sum of a type, with the widest vectors that this processor has; null for i1, which has none.
SumInOrder sumInOrderFor(plan::DType type);

} // namespace dg
