// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/ProgramView.h"

#include <algorithm>
#include <numeric>

namespace dg::viz {

using namespace dg::plan;

namespace {

Figures figuresOf(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs) {
  Figures figures;
  figures.stepUs = view.predicted.totalUs;
  if (view.trace)
    figures.measuredStepUs = view.measured.totalUs;
  double numStages = std::max<double>(1, double(view.stages.size())), mostComputeUs = 0, sumComputeUs = 0;
  for (uint32_t stage = 0; stage < view.stages.size(); ++stage) {
    const RowTimes &row = view.stages[stage];
    double step = std::max(figures.stepUs, 1e-9) * numStages;
    figures.computeShare += row.computeUs / step;
    figures.exposedShare += row.exposedUs / step;
    figures.idleShare += row.idleUs / step;
    sumComputeUs += row.computeUs;
    if (row.computeUs > mostComputeUs) {
      mostComputeUs = row.computeUs;
      figures.slowestStage = stage;
    }
  }
  if (sumComputeUs > 0)
    figures.imbalance = mostComputeUs * numStages / sumComputeUs - 1;
  double ranksPerStage = double(plan.mesh.numRanks()) / std::max<double>(1, plan.numStages());
  for (const std::vector<Action> &actions : view.program->actions)
    for (const Action &action : actions)
      for (TaskId task : plan.chunks[action.chunk].tasks)
        figures.flops += plan.tasks[task].flops * ranksPerStage;
  auto rate = costs.cluster().device.flopsPerSecond.find(DType::f32);
  if (rate != costs.cluster().device.flopsPerSecond.end() && figures.stepUs > 0)
    figures.utilisation = figures.flops / (rate->second * double(plan.mesh.numRanks()) * figures.stepUs * 1e-6);
  figures.bytesMoved = std::accumulate(view.matrix.bytes.begin(), view.matrix.bytes.end(), 0.0);
  for (const StageMemory &memory : plan.memory)
    figures.peakBytes = std::max(figures.peakBytes, memory.arenaBytes);
  return figures;
}

} // namespace

Result<ProgramView> viewOf(const Plan &plan, const Program &program, const partitioner::CostModel &costs,
                           const Trace *trace) {
  ProgramView view;
  view.program = &program;
  view.flow = flowOf(plan, program);
  view.tree = nest(view.flow);
  view.work = workOf(plan);
  Result<Timeline> predicted = predictTimeline(plan, program, costs);
  if (!predicted)
    return predicted.status();
  view.predicted = std::move(*predicted);
  view.predictedPath = markCriticalPath(plan, view.predicted);
  view.stages = rowTimes(plan, view.predicted);
  view.predictedUs = meanTaskUs(plan, view.predicted);
  if (trace && trace->programs.contains(program.name)) {
    view.trace = &trace->programs.at(program.name);
    view.measured = view.trace->timeline;
    view.measuredPath = markCriticalPath(plan, view.measured);
    view.ranks = rowTimes(plan, view.measured);
    view.measuredUs = meanTaskUs(plan, view.measured);
  }
  view.memory = memoryCurves(plan, program, view.predicted);
  view.communications = communicationOps(plan, program, view.predictedUs, view.trace ? &view.measuredUs : nullptr);
  view.matrix = trafficMatrix(plan, view.communications);
  view.figures = figuresOf(plan, view, costs);
  return view;
}

} // namespace dg::viz
