// SPDX-License-Identifier: Apache-2.0
// What each op of a plan is busy with: the word behind its colour, its letter and the sums over a step.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace dg::viz {

enum class Work { forward, inputGradient, weightGradient, update, communication, other };
constexpr auto enumNames(Work) {
  return std::array{"forward", "input gradient", "weight gradient", "update", "communication", "other"};
}
using dg::nameOf;

/// Per task. A backward op works on weight gradients if all that it makes goes to updates without passing through
/// another layer; on input gradients otherwise. Ops of the optimizer are updates wherever they stand: with one
/// micro-batch to a step they follow the gradients in the backward chunk. Zeroing is "other".
std::vector<Work> workOf(const plan::Plan &plan);

/// Per value: whether it is a whole gradient of a parameter: summed over micro-batches, or read by an update.
std::vector<bool> findUpdateInputs(const plan::Plan &plan, const std::vector<Work> &work);

} // namespace dg::viz
