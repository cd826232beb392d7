// SPDX-License-Identifier: Apache-2.0
// A plan with one thing changed, simulated again: what advice is made of. The plan is all there is, so a changed batch
// scales the work of each op by its share of values that grow with the batch; every other number stays.
#pragma once

#include "tools/dgviz/facts/ProgramView.h"

#include "partitioner/schedule/ScheduleDescriptor.h"
#include "runtime/plan/ChunkRole.h"

#include <optional>

namespace dg::viz {

/// Each method returns how long a step would take, in µs on the machines of the cost model and not scaled, or nothing
/// where the change does not apply to the plan. They fail like simulateProgram.
class WhatIf {
public:
  /// All must outlive it.
  WhatIf(const plan::Plan &plan, const ProgramView &view, const partitioner::CostModel &costs);

  using Answer = Result<std::optional<double>>;
  /// The same batch, cut into so many micro-batches: only of a pipeline, and while each rank gets a row of each.
  Answer withMicrobatches(uint32_t count) const;
  /// So many batches to an update; of training only.
  Answer withAccumulation(uint32_t batches) const;
  /// A batch of so many times the samples, in as many micro-batches as now.
  Answer withBatch(uint32_t factor) const;
  /// The pipeline in another order that fills gaps with the gradients of weights; of schedules with one chunk a stage.
  Answer withSchedule(const partitioner::ScheduleDescriptor &schedule) const;
  /// Links of so many times the bandwidth, with as much less latency.
  Answer withFasterLinks(double factor) const;

private:
  /// With `schedule` null the actions stay as they are.
  Answer simulate(plan::Plan changed, const partitioner::ScheduleDescriptor *schedule,
                  const std::vector<plan::ChunkRole> &roles = {}) const;
  /// The program's own; the default one where it runs forward only.
  const partitioner::ScheduleDescriptor *ownSchedule() const;
  bool isTraining() const;
  /// Whether its actions can be ordered anew: each stage has one chunk of a phase, and its schedule asks for no more.
  bool isPlain() const;
  /// Multiplies what grows with the batch.
  void scale(plan::Plan &changed, double factor) const;
  /// With one micro-batch to a step gradients are applied where they are made. Of more they are summed first, and the
  /// updates stand in a chunk of their own.
  void separateUpdates(plan::Plan &changed) const;

  const plan::Plan &plan;
  const ProgramView &view;
  const partitioner::CostModel &costs;
  const plan::Program &program;
  uint32_t index; ///< of the program
};

} // namespace dg::viz
