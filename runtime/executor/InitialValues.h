// SPDX-License-Identifier: Apache-2.0
// How parameters, optimizer states and constants start. A pure function of value, seed and position in the global
// tensor, so that every plan starts from the same numbers.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace dg {

/// Whether fillInitial can make this value's start: random starts need a float type, i32 or i64; a constant
/// and a start from a file take any type, and a file needs `wholeTensor` to have the bytes of the global shape.
Status checkInitial(const plan::Value &value, std::span<const std::byte> wholeTensor);

/// Writes this rank's shard of the value's start into `out` (one slot): block `coordinate` of ceil(global / size) on
/// each cut dimension, zeros where the block reaches past the end. `wholeTensor` is the row-major global tensor of an
/// Init::Kind::file start and empty otherwise. What checkInitial refuses is left untouched. Any thread.
///   constant: value   uniform: (2 u - 1) bound, in float   normal: n deviation, rounded to float
void fillInitial(const plan::Value &value, const plan::Mesh &mesh, plan::Coordinates at, uint64_t seed,
                 std::span<const std::byte> wholeTensor, void *out);

} // namespace dg
