// SPDX-License-Identifier: Apache-2.0
// The inputs that training adds to a model; the runtime feeds them (runtime/data/Dataset.h).
#pragma once

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Made by WeighSamples: the weight of each row in the step, 0 for padding.
inline constexpr llvm::StringLiteral sampleWeightName = "sample_weight";
/// Made by TrainingForms where something is drawn for each sample: the number of each row's sample in the step.
inline constexpr llvm::StringLiteral sampleIndexName = "sample_index";

} // namespace dg::passes
