// SPDX-License-Identifier: Apache-2.0
// Why a searched plan is as it is: what dgc --explain=json prints and packages keep as explain.json.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg::viz {

/// Of an op, or of all ops of its kind in equal layers, which go by the name of the first.
struct OpReason {
  std::string name, choice, runnerUp, boundBy; ///< runnerUp: empty where nothing else was possible
  double costUs = 0, runnerUpUs = 0;           ///< of one micro-batch; what the runner-up would cost more
};

struct CostReason {
  std::string what, advice;
  double stepUs = 0;
};

struct SearchReasons {
  std::string binding; ///< what keeps the plan from being faster
  std::vector<CostReason> largest;
  std::vector<OpReason> ops;
};

/// Keys that are not known are passed over: the text is for people. Fails with badInput on what is no explanation.
Result<SearchReasons> reasonsFromJson(const std::string &text);

} // namespace dg::viz
