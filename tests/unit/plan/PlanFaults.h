// SPDX-License-Identifier: Apache-2.0
// Faults that are planted in a right plan, one kind after the other, to see whether the verifier is a judge.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace dg::plan::testing {

struct FaultKind {
  const char *name; ///< a row of README.md
  /// Breaks the plan at its `place`-th place where it can be broken this way; false if there are not so many.
  bool (*plant)(Plan &plan, size_t place);
  const char *says = ""; ///< what the message must hold, where another rule could refuse the plan for another reason
};

const std::vector<FaultKind> &faultKinds();
/// Those of plans of several replicas: what crosses them too often, too seldom, too late, or at all.
const std::vector<FaultKind> &replicaFaultKinds();

} // namespace dg::plan::testing
