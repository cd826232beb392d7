// SPDX-License-Identifier: Apache-2.0
// Outputs of a program "eval" with a row for each sample (f32), from which its metrics beyond loss and accuracy are
// computed. What they hold is said by ir::SampleFacts; the compiler writes them, runtime/session reads them.
#pragma once

namespace dg::plan {

inline constexpr const char *targetPort = "metric.target", *predictedPort = "metric.predicted",
                            *rankPort = "metric.rank", *scorePort = "metric.score", *squarePort = "metric.square",
                            *absolutePort = "metric.absolute";

} // namespace dg::plan
