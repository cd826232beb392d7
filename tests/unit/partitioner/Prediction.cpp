// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/partitioner/Prediction.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace dg::partitioner {

namespace {

constexpr double notYet = -1;

/// When each pass of each chunk is over. Chunks are numbered in the order in which a micro-batch goes through them.
class ScheduleRun {
public:
  ScheduleRun(const Schedule &schedule, const std::vector<PassTimes> &stages, double sendUs)
      : schedule(schedule), times(stages), sendUs(sendUs), numStages(uint32_t(schedule.stages.size())),
        numChunks(schedule.chunksPerStage * numStages) {
    for (const StageSchedule &stage : schedule.stages)
      for (const Pass &pass : stage.passes)
        numMicrobatches = std::max(numMicrobatches, pass.microbatch + 1);
    forwardEnd.assign(size_t(numChunks) * numMicrobatches, notYet);
    backwardEnd = forwardEnd;
  }

  double run() {
    std::vector<size_t> next(numStages, 0);
    std::vector<double> freeAt(numStages, 0);
    bool isMoving = true;
    while (isMoving) {
      isMoving = false;
      for (uint32_t s = 0; s < numStages; ++s)
        while (next[s] < schedule.stages[s].passes.size()) {
          const Pass &pass = schedule.stages[s].passes[next[s]];
          double readyAt = readyTime(s, pass);
          if (readyAt == notYet)
            break;
          freeAt[s] = std::max(freeAt[s], readyAt) + durationOf(s, pass);
          uint32_t chunk = schedule.chunkOf(s, pass.chunk);
          if (pass.phase == plan::Phase::forward)
            end(forwardEnd, chunk, pass.microbatch) = freeAt[s];
          else if (pass.part != GradientPart::weight)
            end(backwardEnd, chunk, pass.microbatch) = freeAt[s];
          ++next[s];
          isMoving = true;
        }
    }
    for (uint32_t s = 0; s < numStages; ++s)
      if (next[s] < schedule.stages[s].passes.size())
        return std::numeric_limits<double>::infinity(); // a pass waits for one that never comes
    return *std::max_element(freeAt.begin(), freeAt.end());
  }

private:
  double &end(std::vector<double> &table, uint32_t chunk, uint32_t microbatch) {
    return table[size_t(chunk) * numMicrobatches + microbatch];
  }
  double after(std::vector<double> &table, uint32_t chunk, uint32_t microbatch, uint32_t stage) {
    double at = end(table, chunk, microbatch);
    return at == notYet ? notYet : at + (schedule.stageOf(chunk) == stage ? 0 : sendUs);
  }

  double readyTime(uint32_t stage, const Pass &pass) {
    uint32_t chunk = schedule.chunkOf(stage, pass.chunk);
    if (pass.phase == plan::Phase::forward)
      return chunk == 0 ? 0 : after(forwardEnd, chunk - 1, pass.microbatch, stage);
    if (pass.part == GradientPart::weight)
      return end(backwardEnd, chunk, pass.microbatch);
    if (chunk + 1 == numChunks)
      return end(forwardEnd, chunk, pass.microbatch);
    return after(backwardEnd, chunk + 1, pass.microbatch, stage);
  }

  double durationOf(uint32_t stage, const Pass &pass) const {
    const PassTimes &time = times[stage];
    if (pass.phase == plan::Phase::forward)
      return time.forwardUs;
    return (pass.part != GradientPart::weight ? time.inputGradientUs : 0) +
           (pass.part != GradientPart::input ? time.weightGradientUs : 0);
  }

  const Schedule &schedule;
  const std::vector<PassTimes> &times;
  double sendUs;
  uint32_t numStages, numChunks, numMicrobatches = 0;
  std::vector<double> forwardEnd, backwardEnd; ///< [chunk * numMicrobatches + micro-batch]
};

/// Bytes that a rank sends over the tensor axis for one micro-batch.
double tensorBytes(const OpCosts &costs, const std::vector<int32_t> &choices, uint32_t begin, uint32_t end,
                   const std::vector<Needs> &needs, double forward) {
  double bytes = 0;
  for (uint32_t op = begin; op < end; ++op)
    for (const ModelUse &use : costs.model().ops[op].results)
      if (needs[use.value] != 0) {
        ReshardCost cost = costs.reshard(use.value, choices[op], needs[use.value]);
        bytes += forward * cost.forwardBytes + cost.backwardBytes;
      }
  return bytes;
}

} // namespace

double runSchedule(const Schedule &schedule, const std::vector<PassTimes> &stages, double sendUs) {
  return ScheduleRun(schedule, stages, sendUs).run();
}

Prediction predict(const Model &model, const CostModel &costs, const SearchedPlan &plan) {
  const Configuration &how = plan.configuration;
  OpCosts opCosts(model, costs, {how.tensor, rowsOf(model, how), how.precision});
  StepTable table(opCosts, plan.choices, findSegments(model));
  StepModel step(model, costs, how);
  std::vector<Needs> needs(model.values.size(), 0);
  for (uint32_t op = 0; op < model.ops.size(); ++op)
    for (const ModelUse &use : model.ops[op].operands)
      needs[use.value] |= needOf(use, plan.choices[op]);

  Prediction result;
  std::vector<PassTimes> times;
  double sendUs = 0, executedFlops = 0, modelFlops = 0, slowestUs = 0;
  const double m = how.microbatches, chunks = model.isTraining ? how.chunksPerRank : 1;
  for (uint32_t s = 0; s < how.pipe; ++s) {
    uint32_t begin = plan.stages.begins[s], end = s + 1 < how.pipe ? plan.stages.begins[s + 1] : table.numOps();
    bool isRecomputed = plan.stages.isRecomputed[s];
    StageSums sums = table.sums(begin, end);
    for (double *us : {&sums.forwardUs, &sums.inputGradientUs, &sums.weightGradientUs})
      *us /= step.speedOf(s);
    StageCost cost = step.stage(table, begin, end, s, isRecomputed);
    double inputUs = sums.inputGradientUs + (isRecomputed ? sums.forwardUs : 0);
    times.push_back({sums.forwardUs / chunks, inputUs / chunks, sums.weightGradientUs / chunks});
    result.stages.push_back(
        {begin, end, sums.forwardUs, inputUs + sums.weightGradientUs, cost.syncUs, cost.bytes, isRecomputed});
    if (s > 0)
      sendUs = std::max(sendUs, step.sendUs(table, begin) / (model.isTraining ? 2 : 1));
    executedFlops += m * (sums.matrixFlops * (isRecomputed ? 2 : 1) + sums.gradientMatrixFlops);
    modelFlops += m * (sums.matrixFlops + sums.gradientMatrixFlops);
    Traffic traffic;
    traffic.tensorBytes = m * tensorBytes(opCosts, plan.choices, begin, end, needs, isRecomputed ? 2 : 1);
    traffic.pipeBytes = m * chunks *
                        ((s > 0 && model.isTraining ? table.crossingBytes(begin) : 0) +
                         (s + 1 < how.pipe ? table.crossingBytes(end) : 0));
    traffic.dataBytes = step.dataBytes(sums.parameterElements);
    double total = traffic.tensorBytes + traffic.pipeBytes + traffic.dataBytes;
    if (total > result.traffic.tensorBytes + result.traffic.pipeBytes + result.traffic.dataBytes)
      result.traffic = traffic;
    if (double us = m * cost.stepUs + cost.syncUs; us > slowestUs) {
      slowestUs = us;
      result.commUs = m * step.commUs(opCosts, plan.choices, needs, begin, end, isRecomputed ? 2 : 1) + cost.syncUs;
      result.computeUs = us - result.commUs;
    }
  }
  Result<Schedule> schedule =
      model.isTraining ? makeSchedule(*how.schedule, how.shape()) : makeForwardSchedule({how.pipe, how.microbatches});
  double pipelineUs = schedule ? runSchedule(*schedule, times, sendUs) : plan.stages.stepUs;
  double syncUs = 0, busyUs = 0;
  for (size_t s = 0; s < result.stages.size(); ++s) {
    syncUs = std::max(syncUs, result.stages[s].syncUs);
    busyUs += m * (result.stages[s].forwardUs + result.stages[s].backwardUs);
  }
  result.stepUs = pipelineUs + syncUs;
  result.bubble = std::max(0.0, 1 - busyUs / (how.pipe * pipelineUs));
  const double perDevice = 1 / (double(how.pipe) * result.stepUs * 1e6);
  result.tflopsPerDevice = executedFlops * perDevice;
  result.modelTflopsPerDevice = modelFlops * perDevice;
  const Device &device = costs.cluster().device;
  auto rate = device.flopsPerSecond.find(how.precision);
  if (rate == device.flopsPerSecond.end())
    rate = device.flopsPerSecond.find(plan::DType::f32);
  result.utilisation = result.tflopsPerDevice * 1e12 / rate->second;
  return result;
}

} // namespace dg::partitioner
