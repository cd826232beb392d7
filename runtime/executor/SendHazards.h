// SPDX-License-Identifier: Apache-2.0
// Which sends may still be reading memory that a task is about to write. A send has no finish task: the executor waits
// for it before its bytes are written again, by whatever value lies there.
#pragma once

#include "runtime/executor/Communications.h"
#include "runtime/plan/Plan.h"

#include <vector>

namespace dg {

/// Smallest number of runs after which the slots of these values repeat, at most `runs`.
uint32_t periodOf(const plan::Plan &plan, const std::vector<plan::ValueId> &values, uint32_t runs);

class SendHazards {
public:
  explicit SendHazards(const plan::Plan &plan) : plan(plan) {}
  /// `operations[i]` sends slot i of `value`.
  void addSend(plan::ValueId value, const std::vector<Operation *> &operations);
  /// For each run of `task` (as many as its period, or one when all are equal) the operations to wait for; empty when
  /// no run has any.
  std::vector<std::vector<Operation *>> before(const plan::Task &task, uint32_t runs) const;

private:
  struct Range {
    uint64_t begin, end;
    Operation *operation;
  };
  const plan::Plan &plan;
  std::vector<Range> sends;
};

} // namespace dg
