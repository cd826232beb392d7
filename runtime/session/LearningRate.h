// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules: a factor of the base rate for each epoch, a pure function, so that a resumed run continues
// exactly.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>

namespace dg::session {

/// constant · step:every=N,gamma=G (times G after every N epochs; G is 0.1 if not given) · cosine:epochs=N (from 1 to 0
/// over N epochs, as PyTorch's CosineAnnealingLR with eta_min 0).
class LearningRateSchedule {
public:
  LearningRateSchedule() = default;
  /// Fails (usage) on anything but the three forms.
  static Result<LearningRateSchedule> parse(const std::string &text);
  /// For epoch `epoch`, from 0.
  double factorOf(int64_t epoch) const;
  /// What parse reads back.
  std::string describe() const;

private:
  enum class Kind { constant, step, cosine } kind = Kind::constant;
  int64_t epochs = 0;
  double gamma = 0;
};

} // namespace dg::session
