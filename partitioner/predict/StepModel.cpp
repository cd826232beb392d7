// SPDX-License-Identifier: Apache-2.0
#include "partitioner/predict/StepModel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dg::partitioner {

using plan::TaskKind;

std::string Configuration::meshText() const { return fmt::format("data={},tensor={},pipe={}", data, tensor, pipe); }

double rowsOf(const Model &model, const Configuration &configuration) {
  const double parts = model.isMicrobatch ? 1 : configuration.microbatches;
  return std::ceil(double(model.numSamples) / (configuration.data * parts));
}

//===- StepTable -------------------------------------------------------------------------------------------------===//

static void accumulate(StageSums &sums, const StageSums &other, double sign) {
  sums.forwardUs += sign * other.forwardUs;
  sums.inputGradientUs += sign * other.inputGradientUs;
  sums.weightGradientUs += sign * other.weightGradientUs;
  sums.parameterElements += sign * other.parameterElements;
  sums.savedBytes += sign * other.savedBytes;
  sums.keptBytes += sign * other.keptBytes;
  sums.matrixFlops += sign * other.matrixFlops;
  sums.gradientMatrixFlops += sign * other.gradientMatrixFlops;
}

StepTable::StepTable(const OpCosts &costs, const std::vector<int32_t> &choices, const std::vector<uint32_t> &bounds) {
  const Model &model = costs.model();
  const uint32_t n = uint32_t(model.ops.size());
  std::vector<StageSums> own(n);
  std::vector<Needs> needs(model.values.size(), 0);
  std::vector<uint32_t> lastUse(model.values.size(), 0);
  std::vector<uint8_t> isBound(n + 1, 0);
  for (uint32_t bound : bounds)
    isBound[bound] = 1;
  for (uint32_t op = 0; op < n; ++op) {
    OpCost cost = costs.of(op, choices[op]);
    own[op] = {cost.forwardUs,         cost.inputGradientUs,    cost.weightGradientUs,
               cost.parameterElements, cost.savedBytes,         0,
               cost.matrixFlops,       cost.gradientMatrixFlops};
    if (isBound[op + 1])
      own[op].keptBytes = cost.resultBytes;
    for (const ModelUse &use : model.ops[op].operands) {
      needs[use.value] |= needOf(use, choices[op]);
      lastUse[use.value] = op;
    }
  }
  crossing.assign(n + 2, 0);
  for (uint32_t op = 0; op < n; ++op)
    for (const ModelUse &use : model.ops[op].results) {
      uint32_t id = use.value;
      if (needs[id] == 0)
        continue;
      ReshardCost reshard = costs.reshard(id, choices[op], needs[id]);
      own[op].forwardUs += reshard.forwardUs; // collectives stand on the producer's stage
      own[op].inputGradientUs += reshard.backwardUs;
      double bytes = costs.bytesOf(model.values[id]);
      bool isCut =
          choices[op] >= 0 && std::find(use.factors.begin(), use.factors.end(), choices[op]) != use.factors.end();
      if (isCut)
        bytes /= costs.division().tensor;
      if (lastUse[id] > op) {
        crossing[op + 1] += bytes;
        crossing[lastUse[id] + 1] -= bytes;
      }
    }
  addUp(own, bounds);
}

void StepTable::addUp(const std::vector<StageSums> &own, const std::vector<uint32_t> &bounds) {
  for (size_t p = 1; p < crossing.size(); ++p)
    crossing[p] += crossing[p - 1];
  prefix.resize(own.size() + 1);
  for (size_t op = 0; op < own.size(); ++op) {
    prefix[op + 1] = prefix[op];
    accumulate(prefix[op + 1], own[op], 1);
  }
  for (size_t s = 0; s + 1 < bounds.size(); ++s)
    largestSegment = std::max(largestSegment, prefix[bounds[s + 1]].savedBytes - prefix[bounds[s]].savedBytes);
}

StepTable StepTable::least(const OpCosts &costs, const std::vector<uint32_t> &bounds,
                           const std::vector<std::pair<double, double>> &segmentUs) {
  const Model &model = costs.model();
  const uint32_t n = uint32_t(model.ops.size());
  std::vector<StageSums> own(n);
  std::vector<double> leastBytes(model.values.size(), 0);
  std::vector<uint32_t> lastUse(model.values.size(), 0);
  std::vector<uint8_t> isBound(n + 1, 0);
  for (uint32_t bound : bounds)
    isBound[bound] = 1;
  for (uint32_t op = 0; op < n; ++op) {
    bool isFirst = true;
    auto lower = [&](double &field, double value) { field = isFirst ? value : std::min(field, value); };
    for (int32_t choice : choicesOf(model.ops[op], costs.division().tensor)) {
      OpCost cost = costs.of(op, choice);
      lower(own[op].forwardUs, cost.forwardUs);
      lower(own[op].inputGradientUs, cost.inputGradientUs);
      lower(own[op].weightGradientUs, cost.weightGradientUs);
      lower(own[op].parameterElements, cost.parameterElements);
      lower(own[op].savedBytes, cost.savedBytes);
      lower(own[op].keptBytes, isBound[op + 1] ? cost.resultBytes : 0);
      for (const ModelUse &use : model.ops[op].results) {
        bool isCut = choice >= 0 && std::find(use.factors.begin(), use.factors.end(), choice) != use.factors.end();
        lower(leastBytes[use.value], costs.bytesOf(model.values[use.value]) / (isCut ? costs.division().tensor : 1));
      }
      isFirst = false;
    }
    for (const ModelUse &use : model.ops[op].operands)
      lastUse[use.value] = op;
  }
  for (size_t s = 0; s < segmentUs.size(); ++s) {
    for (uint32_t op = bounds[s]; op < bounds[s + 1]; ++op)
      own[op].forwardUs = own[op].inputGradientUs = own[op].weightGradientUs = 0;
    auto [plain, recomputed] = segmentUs[s];
    own[bounds[s]].forwardUs = recomputed - plain;
    own[bounds[s]].inputGradientUs = plain - (recomputed - plain);
  }
  StepTable table;
  table.crossing.assign(n + 2, 0);
  for (size_t v = 0; v < model.values.size(); ++v)
    if (uint32_t producer = model.values[v].producer; producer != noOp && lastUse[v] > producer) {
      table.crossing[producer + 1] += leastBytes[v];
      table.crossing[lastUse[v] + 1] -= leastBytes[v];
    }
  table.addUp(own, bounds);
  return table;
}

StageSums StepTable::sums(uint32_t begin, uint32_t end) const {
  StageSums result = prefix[end];
  accumulate(result, prefix[begin], -1);
  return result;
}

//===- StepModel -------------------------------------------------------------------------------------------------===//

StepModel::StepModel(const Model &model, const CostModel &costs, const Configuration &configuration)
    : model(model), costs(costs), how(configuration) {
  const Cluster &cluster = costs.cluster();
  const uint32_t perNode = cluster.devicesPerNode;
  const uint32_t perStage = how.data * how.tensor;
  // The data ranks of a stage lie `tensor` apart.
  dataGroup = {how.data, std::min(how.data, (perStage + perNode - 1) / perNode)};
  for (uint32_t s = 0; s + 1 < how.pipe; ++s)
    if (const Link &link = costs.linkBetweenStages(s, s + 1, perStage);
        s == 0 || link.bytesPerSecond < slowestLink.bytesPerSecond)
      slowestLink = link;
  for (uint32_t s = 0; s < how.pipe; ++s) {
    speeds.push_back(cluster.speedOf(int64_t(s) * perStage));
    for (uint32_t i = 1; i < perStage; ++i)
      speeds[s] = std::min(speeds[s], cluster.speedOf(int64_t(s) * perStage + i));
  }
  fillShare = how.schedule->fillShare(how.shape());
}

double StepModel::largestSpeed() const { return *std::max_element(speeds.begin(), speeds.end()); }
double StepModel::totalSpeed() const { return std::accumulate(speeds.begin(), speeds.end(), 0.0); }

double StepModel::bytesPerParameter() const {
  const double element = double(plan::sizeOf(how.precision));
  if (!model.isTraining)
    return element;
  const double states = model.parameterElements > 0 ? model.stateElements / model.parameterElements : 0;
  const double master = element < 4 ? 4 : 0; // 16-bit weights have an f32 copy; gradients are summed in f32
  const double gradient = std::max(element, 4.0);
  return element / (how.zero >= 3 ? how.data : 1) + gradient / (how.zero >= 2 ? how.data : 1) +
         (master + states * std::max(element, 4.0)) / (how.zero >= 1 ? how.data : 1);
}

double StepModel::syncUs(double elements) const {
  if (!model.isTraining)
    return 0;
  const double weight = double(plan::sizeOf(how.precision)), gradient = std::max(weight, 4.0);
  auto collective = [&](TaskKind kind, double bytes) {
    if (how.data <= 1 || bytes <= 0)
      return 0.0;
    return costs.collectiveUs(kind, costs.bestAlgorithm(kind, dataGroup, bytes), dataGroup, bytes);
  };
  double reduceUs = 0;
  const double m = how.microbatches;
  if (how.zero == 0)
    reduceUs = collective(TaskKind::allReduce, elements * gradient);
  else // gradients are scattered once, or for every micro-batch where their sum is cut too; parameters gathered again
    reduceUs = (how.zero >= 2 ? m : 1) * collective(TaskKind::reduceScatter, elements * gradient) +
               (how.zero >= 3 ? 2 * m : 1) * collective(TaskKind::allGather, elements * weight);
  const double perElement = model.parameterElements > 0 ? model.updateElements / model.parameterElements : 0;
  const double updated = elements / (how.zero >= 1 ? how.data : 1);
  return exposedGradientShare * reduceUs + updated * perElement * 4 / costs.cluster().device.memoryBytesPerSecond * 1e6;
}

double StepModel::dataBytes(double elements) const {
  if (!model.isTraining || how.data <= 1)
    return 0;
  const double weight = double(plan::sizeOf(how.precision)), gradient = std::max(weight, 4.0), m = how.microbatches;
  const double share = double(how.data - 1) / how.data;
  if (how.zero == 0)
    return 2 * elements * gradient * share;
  return ((how.zero >= 2 ? m : 1) * gradient + (how.zero >= 3 ? 2 * m : 1) * weight) * elements * share;
}

double StepModel::commUs(const OpCosts &opCosts, const std::vector<int32_t> &choices, const std::vector<Needs> &needs,
                         uint32_t begin, uint32_t end, double forward) const {
  double us = 0;
  for (uint32_t op = begin; op < end; ++op)
    for (const ModelUse &use : model.ops[op].results)
      if (needs[use.value] != 0) {
        ReshardCost cost = opCosts.reshard(use.value, choices[op], needs[use.value]);
        us += forward * cost.forwardUs + cost.backwardUs;
      }
  return us;
}

StageCost StepModel::stage(const StepTable &table, uint32_t begin, uint32_t end, uint32_t stage,
                           bool isRecomputed) const {
  StageSums sums = table.sums(begin, end);
  StageCost cost;
  cost.stepUs = sums.stepUs(isRecomputed) / speeds[stage];
  cost.syncUs = syncUs(sums.parameterElements);
  const double slots = model.isTraining ? slotsOf(stage) : 1;
  const double received = table.crossingBytes(begin); // what arrives is kept as well
  cost.bytes = sums.parameterElements * bytesPerParameter() + slots * received;
  cost.bytes +=
      isRecomputed ? recomputationBytes(sums.keptBytes, slots, table.largestSegmentBytes()) : slots * sums.savedBytes;
  return cost;
}

double recomputationBytes(double keptBytes, double slots, double segmentBytes) {
  const double all = slots * keptBytes;
  auto bytes = [&](double k) { return all / k + k * segmentBytes; };
  if (all <= segmentBytes || segmentBytes <= 0)
    return bytes(1);
  const double k = std::floor(std::sqrt(all / segmentBytes));
  return std::min(bytes(k), bytes(k + 1));
}

double StepModel::sendUs(const StepTable &table, uint32_t position) const {
  const double ways = model.isTraining ? 2 : 1;
  return ways * (slowestLink.latencyUs +
                 costs.sendUs(table.crossingBytes(position), slowestLink, costs.neighbours(how.tensor)));
}

double StepModel::stepUs(double sumUs, double largestUs, double sendsUs, double syncUs) const {
  return how.microbatches * largestUs + fillShare * (sumUs - largestUs) + sendsUs * how.chunksPerRank + syncUs;
}

StagePlan evaluate(const StepModel &step, const StepTable &table, std::vector<uint32_t> begins,
                   std::vector<uint8_t> isRecomputed) {
  StagePlan plan{std::move(begins), std::move(isRecomputed), 0, 0};
  double sum = 0, largest = 0, sends = 0, sync = 0;
  for (uint32_t s = 0; s < plan.begins.size(); ++s) {
    uint32_t end = s + 1 < plan.begins.size() ? plan.begins[s + 1] : table.numOps();
    StageCost cost = step.stage(table, plan.begins[s], end, s, plan.isRecomputed[s]);
    sum += cost.stepUs;
    largest = std::max(largest, cost.stepUs);
    sync = std::max(sync, cost.syncUs);
    plan.peakBytes = std::max(plan.peakBytes, cost.bytes);
    if (s > 0)
      sends += step.sendUs(table, plan.begins[s]);
  }
  plan.stepUs = step.stepUs(sum, largest, sends, sync);
  return plan;
}

} // namespace dg::partitioner
