// SPDX-License-Identifier: Apache-2.0
#include "partitioner/model/OpCosts.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace dg::partitioner {

using plan::TaskKind;

std::vector<int32_t> choicesOf(const ModelOp &op, uint32_t tensor) {
  if (tensor > 1 && op.pinnedChoice != notPinned)
    return {op.pinnedChoice};
  std::vector<int32_t> choices = {uncut};
  if (tensor > 1)
    for (size_t factor = 0; factor < op.factorSizes.size(); ++factor)
      if (op.isCuttable[factor] && op.factorSizes[factor] % tensor == 0)
        choices.push_back(int32_t(factor));
  if (tensor > 1 && op.isView)
    choices.push_back(carried);
  return choices;
}

/// The dimension of a use that a factor cuts; -1 if none.
static int32_t dimOf(const std::vector<int32_t> &factors, int32_t factor) {
  auto found = std::find(factors.begin(), factors.end(), factor);
  return found == factors.end() ? -1 : int32_t(found - factors.begin());
}

Needs needOf(const ModelUse &use, int32_t choice) {
  if (choice == uncut)
    return needsReplicated;
  int32_t dim = choice == carried ? -1 : dimOf(use.factors, choice);
  return dim < 0 ? needsBroadcast : needsCut(uint32_t(dim));
}

OpCosts::OpCosts(const Model &model, const CostModel &costs, Division division)
    : source(model), costs(costs), how(division) {
  tensorGroup = costs.neighbours(how.tensor); // the tensor axis moves fastest
}

double OpCosts::bytesOf(const ModelValue &value) const {
  double bytes = value.elements * double(value.isFloat ? plan::sizeOf(how.precision) : 4);
  return value.isPerSample ? bytes * how.rows / double(source.numSamples) : bytes;
}

void OpCosts::addCollective(TaskKind kind, double bytes, double &us, double &sentBytes) const {
  if (how.tensor <= 1 || bytes <= 0)
    return;
  us += costs.collectiveUs(kind, costs.bestAlgorithm(kind, tensorGroup, bytes), tensorGroup, bytes);
  sentBytes += (kind == TaskKind::allReduce ? 2 : 1) * bytes * (how.tensor - 1) / how.tensor;
}

double OpCosts::workUs(const Work &work, double flopsShare, double bytesShare) const {
  if (work.flops <= 0 && work.bytes <= 0)
    return 0;
  double launches = (double(work.numKernels) - 1) * costs.cluster().device.launchUs; // kernelUs counts one
  return costs.kernelUs(work.flops * flopsShare, work.bytes * bytesShare, how.precision, work.op) + launches;
}

OpCost OpCosts::of(uint32_t index, int32_t choice) const {
  const ModelOp &op = source.ops[index];
  const double ways = choice < 0 ? 1 : how.tensor;
  const double samples = op.isPerSample ? how.rows / double(source.numSamples) : 1;
  // Bytes shrink with the samples and with the operands and results that hold the factor; gradients move the same
  // tensors.
  double whole = 0, local = 0;
  OpCost cost;
  const double element = double(plan::sizeOf(how.precision));
  auto count = [&](double wholeBytes, double bytes, const std::vector<int32_t> &factors) {
    double share = choice >= 0 && dimOf(factors, choice) >= 0 ? bytes / ways : bytes;
    whole += wholeBytes;
    local += share;
    return share;
  };
  auto countValue = [&](const ModelUse &use) {
    const ModelValue &value = source.values[use.value];
    return count(value.elements * (value.isFloat ? element : 4), bytesOf(value), use.factors);
  };
  for (const ModelUse &use : op.operands)
    countValue(use);
  for (const ModelUse &use : op.results) {
    double share = countValue(use);
    cost.resultBytes += share;
    if (source.values[use.value].isSaved)
      cost.savedBytes += share;
  }
  for (const ModelParameter &parameter : op.parameters)
    cost.parameterElements +=
        count(parameter.elements * element, parameter.elements * element, parameter.factors) / element;
  // Work is given in f32 bytes of the whole batch; parameters do not shrink with the samples.
  const double bytesShare = (whole > 0 ? local / whole : samples) * element / 4;
  const double flopsShare = samples / ways;
  cost.forwardUs = workUs(op.forward, flopsShare, bytesShare);
  cost.inputGradientUs = workUs(op.inputGradient, flopsShare, bytesShare);
  cost.weightGradientUs = workUs(op.weightGradient, flopsShare, bytesShare);
  cost.matrixFlops = op.forward.matrixFlops * flopsShare;
  cost.gradientMatrixFlops = (op.inputGradient.matrixFlops + op.weightGradient.matrixFlops) * flopsShare;
  return cost;
}

const ModelUse &OpCosts::resultUse(uint32_t value) const {
  for (const ModelUse &use : source.ops[source.values[value].producer].results)
    if (use.value == value)
      return use;
  assert(false && "checkModel lets no value pass whose producer does not name it");
  return source.ops[source.values[value].producer].results.front();
}

ReshardCost OpCosts::reshard(uint32_t id, int32_t choice, Needs needs) const {
  const ModelValue &value = source.values[id];
  if (how.tensor == 1 || needs == 0)
    return {};
  const double bytes = bytesOf(value);
  const bool hasGradient = value.isFloat && source.isTraining;
  const bool isBroadcast = needs & needsBroadcast;
  const bool isWhole = needs & (needsReplicated | needsBroadcast);
  Needs cuts = needs & ~(needsReplicated | needsBroadcast);
  const int32_t dim = value.producer == noOp || choice < 0 ? -1 : dimOf(resultUse(id).factors, choice);
  const bool isPartial = value.producer != noOp && choice >= 0 && dim < 0;
  ReshardCost cost;
  if (choice == carried && value.producer != noOp) { // all readers must return summands
    if (needs != needsBroadcast)
      cost.backwardUs = std::numeric_limits<double>::infinity();
    return cost;
  }
  if (dim >= 0)
    cuts &= ~needsCut(uint32_t(dim)); // those readers take it as it is
  if (isPartial) {
    addCollective(TaskKind::allReduce, bytes, cost.forwardUs, cost.forwardBytes);
  } else if (dim >= 0 && (isWhole || cuts)) {
    addCollective(TaskKind::allGather, bytes, cost.forwardUs, cost.forwardBytes);
  }
  // A rank takes its part of what is whole with a kernel.
  const double sliceUs = costs.kernelUs(0, 2 * bytes / how.tensor, how.precision, "");
  cost.forwardUs += std::popcount(cuts) * sliceUs;
  if (!hasGradient || value.producer == noOp)
    return cost;
  if (dim >= 0 && (isWhole || cuts))
    cost.backwardUs += sliceUs;
  if (isBroadcast) // summands of the gradient; readers' parts are added first
    addCollective(TaskKind::allReduce, bytes, cost.backwardUs, cost.backwardBytes);
  for (int i = 0; i < std::popcount(cuts); ++i)
    addCollective(TaskKind::allGather, bytes, cost.backwardUs, cost.backwardBytes);
  return cost;
}

} // namespace dg::partitioner
