// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/ProgramView.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <numeric>

namespace dg::viz {

using namespace dg::plan;

namespace {

/// What the computing of a step waits for, by the roofline: the start of a kernel, then the slower of arithmetic and
/// memory.
void splitComputing(const Plan &plan, const ProgramView &view, const partitioner::Device &device, Figures &figures) {
  double step = std::max(figures.stepUs, 1e-9) * std::max<double>(1, double(view.stages.size()));
  for (const TimelineEvent &event : view.predicted.events) {
    const Task &task = plan.tasks[event.task];
    if (event.lane != 0)
      continue;
    double lengthUs = event.endUs - event.startUs,
           launchUs = std::min(lengthUs, device.launchUs * view.predicted.scale);
    const std::vector<ValueId> writes = writesOf(task);
    auto rate = writes.empty() ? device.flopsPerSecond.end() : device.flopsPerSecond.find(plan.values[writes[0]].dtype);
    double flopsPerSecond = rate == device.flopsPerSecond.end() ? device.flopsPerSecond.begin()->second : rate->second;
    bool isArithmetic = task.flops / (flopsPerSecond * device.efficiency) > task.bytes / device.memoryBytesPerSecond;
    figures.launchShare += launchUs / step;
    (isArithmetic ? figures.arithmeticShare : figures.memoryShare) += (lengthUs - launchUs) / step;
  }
}

Figures figuresOf(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs,
                  Prediction prediction) {
  Figures figures;
  figures.stepUs = view.predicted.totalUs;
  if (view.trace)
    figures.measuredStepUs = view.measured.totalUs;
  // The plan's own figures where they are about this program on these machines.
  bool isPlans = prediction != Prediction::elsewhere && isPredictedProgram(plan, *view.program);
  const Predicted &sums = isPlans ? plan.predicted : view.predicted.simulated;
  figures.computeUs = sums.computeUs;
  figures.commUs = sums.commUs;
  figures.bubble = sums.bubble;
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
  for (const std::vector<Action> &actions : view.program->actions)
    for (const Action &action : actions) {
      // Actions are those of one replica: all have some of the micro-batches, and each has the rest.
      const double runs = isPerMicrobatch(plan.chunks[action.chunk].phase) && !view.program->dealt.empty()
                              ? double(view.program->microbatches) / view.program->dealt.front()
                              : double(plan.mesh.replicas);
      for (TaskId task : plan.chunks[action.chunk].tasks)
        figures.flops += plan.tasks[task].flops * double(plan.mesh.ranksOfStage()) * runs;
    }
  splitComputing(plan, view, costs.cluster().device, figures);
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
                           Prediction prediction, const Trace *trace) {
  ProgramView view;
  view.program = &program;
  view.flow = flowOf(plan, program);
  view.tree = nest(view.flow);
  view.work = workOf(plan);
  Result<Timeline> predicted = predictTimeline(plan, program, costs, prediction == Prediction::scaled);
  if (!predicted)
    return predicted.status();
  view.predicted = std::move(*predicted);
  view.predictedPath = markCriticalPath(plan, view.predicted);
  view.stages = rowTimes(plan, view.predicted);
  view.predictedUs = meanTaskUs(plan, view.predicted);
  if (trace && trace->programs.contains(program.kind)) {
    view.trace = &trace->programs.at(program.kind);
    view.measured = view.trace->timeline;
    view.measuredPath = markCriticalPath(plan, view.measured);
    view.ranks = rowTimes(plan, view.measured);
    view.measuredUs = meanTaskUs(plan, view.measured);
  }
  view.memory = memoryCurves(plan, program, view.predicted);
  view.communications = communicationOps(plan, program, view.predictedUs, view.trace ? &view.measuredUs : nullptr);
  view.matrix = trafficMatrix(plan, view.communications);
  view.figures = figuresOf(plan, view, costs, prediction);
  return view;
}

} // namespace dg::viz
