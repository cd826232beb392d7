// SPDX-License-Identifier: Apache-2.0
// A small but complete training plan for tests: a chain of matmuls over pipeline stages, with micro-batches,
// data-parallel gradient sums, and an optimizer.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::plan::testing {

struct SampleOptions {
  uint32_t stages = 2;
  int64_t data = 2;
  uint32_t microbatches = 4;
  bool oneForwardOneBackward = true; ///< 1f1b, else gpipe
  uint32_t layers = 3;               ///< matmuls per stage
};

/// A plan that verifies. Program "train"; per stage four chunks (begin, forward, backward, update).
Plan samplePlan(const SampleOptions &options = {});

/// The first task of this name; the test fails if there is none.
TaskId taskNamed(const Plan &plan, const std::string &name);
ValueId valueNamed(const Plan &plan, const std::string &name);

} // namespace dg::plan::testing
