// SPDX-License-Identifier: Apache-2.0
// How fast one thread of this host can be at most, measured: what --profile holds the rate of each op against.
#pragma once

namespace dg {

/// Multiply-adds of f32 in registers, the best of several runs, in flops a second. Takes about 20 ms.
double measurePeakFlops();

} // namespace dg
