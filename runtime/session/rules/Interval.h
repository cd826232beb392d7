// SPDX-License-Identifier: Apache-2.0
// How often something is done in a training, as --checkpoint-every and --eval-every take it.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>

namespace dg::session {

/// "10epochs" or "500steps".
struct Interval {
  int64_t epochs = 0, steps = 0; ///< 0: not by this
  /// Fails (usage), naming `flag`, on anything else.
  static Result<Interval> parse(const char *flag, const std::string &text);
  /// Inside an epoch, after so many steps.
  bool isDueAfterStep(int64_t step) const { return steps > 0 && step % steps == 0; }
  /// At the end of an epoch, after so many epochs and steps.
  bool isDueAfterEpoch(int64_t epoch, int64_t step) const {
    return (epochs > 0 && epoch % epochs == 0) || isDueAfterStep(step);
  }
};

} // namespace dg::session
