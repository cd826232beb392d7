// SPDX-License-Identifier: Apache-2.0
// What changed from one plan to another: figures, ops, traffic, memory.
#pragma once

#include "tools/dgviz/facts/ProgramView.h"

#include <string>
#include <vector>

namespace dg::viz {

enum class Unit { time, bytes, share, count };

struct FigureChange {
  std::string name;
  Unit unit = Unit::time;
  double before = 0, after = 0;
  bool lessIsBetter = true;
};

/// What was asked for, in words: mesh, micro-batches, schedule.
struct SettingChange {
  std::string name, before, after;
};

/// An op that only one plan has, or that both have in another place.
struct OpChange {
  std::string name;
  plan::Phase phase = plan::Phase::forward;
  plan::TaskId before = plan::noId, after = plan::noId; ///< noId: the plan has it not
  std::string what;                                     ///< "stage 0 → 1, cut whole → dimension 1 over tensor"
  double deltaUs = 0;                                   ///< of all its calls in a step, on one rank
};

struct PlanDifference {
  /// How the models differ, in one sentence; empty: they have the same parameters. Of two models only the figures can
  /// be compared, ops that have one name may be two things.
  std::string models;
  std::vector<SettingChange> settings;                              ///< of both plans, changed or not
  std::vector<FigureChange> figures;                                ///< of both plans, changed or not
  std::vector<OpChange> ops;                                        ///< largest change of time first
  uint64_t numSame = 0, numMoved = 0, numAdded = 0, numRemoved = 0; ///< ops
  std::vector<FigureChange> traffic;                                ///< bytes over all ranks by op and axis
};

/// Compares two programs of one name. Ops are matched by phase, name and their number among those of that name.
PlanDifference compare(const plan::Plan &planBefore, const ProgramView &before, const plan::Plan &planAfter,
                       const ProgramView &after);

} // namespace dg::viz
