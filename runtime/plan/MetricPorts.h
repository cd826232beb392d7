// SPDX-License-Identifier: Apache-2.0
// Names of outputs that the compiler writes and runtime/session reads.
#pragma once

namespace dg::plan {

/// Of a program "train": the norm of all gradients of the step, before clipping (f32).
inline constexpr const char *gradientNormPort = "grad_norm";

// Of a program "eval", with a row for each sample (f32), from which its metrics beyond loss and accuracy are
// computed. What they hold is said by ir::SampleFacts.
inline constexpr const char *targetPort = "metric.target", *predictedPort = "metric.predicted",
                            *rankPort = "metric.rank", *scorePort = "metric.score", *squarePort = "metric.square",
                            *absolutePort = "metric.absolute";

} // namespace dg::plan
