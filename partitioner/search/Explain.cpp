// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/Explain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace dg::partitioner {

namespace {

constexpr size_t numLargest = 5;

/// What one op and the values around it cost, for given choices of all ops.
class LocalCosts {
public:
  LocalCosts(const OpCosts &costs, std::vector<int32_t> choices) : costs(costs), choices(std::move(choices)) {
    readersOf.resize(costs.model().values.size());
    for (uint32_t op = 0; op < costs.model().ops.size(); ++op)
      for (const ModelUse &use : costs.model().ops[op].operands)
        readersOf[use.value].push_back(op);
  }

  double kernelUs(uint32_t op, double forward) const {
    OpCost cost = costs.of(op, choices[op]);
    return forward * cost.forwardUs + cost.inputGradientUs + cost.weightGradientUs;
  }
  /// Collectives that bring the op's results to their readers.
  double resultUs(uint32_t op, double forward) const {
    double us = 0;
    for (const ModelUse &use : costs.model().ops[op].results)
      us += valueUs(use.value, forward);
    return us;
  }
  /// All that changes with the op's choice.
  double aroundUs(uint32_t op, int32_t choice, double forward) {
    std::swap(choices[op], choice);
    double us = kernelUs(op, forward) + resultUs(op, forward);
    for (const ModelUse &use : costs.model().ops[op].operands)
      us += valueUs(use.value, forward);
    std::swap(choices[op], choice);
    return us;
  }

private:
  double valueUs(uint32_t value, double forward) const {
    uint32_t producer = costs.model().values[value].producer;
    Needs needs = 0;
    for (uint32_t reader : readersOf[value])
      for (const ModelUse &use : costs.model().ops[reader].operands)
        if (use.value == value)
          needs |= needOf(use, choices[reader]);
    if (producer == noOp || needs == 0)
      return 0;
    ReshardCost cost = costs.reshard(value, choices[producer], needs);
    return forward * cost.forwardUs + cost.backwardUs;
  }

  const OpCosts &costs;
  std::vector<int32_t> choices;
  std::vector<std::vector<uint32_t>> readersOf;
};

OpExplanation explainOp(LocalCosts &local, const Model &model, const SearchedPlan &plan, uint32_t op, double forward) {
  const uint32_t tensor = plan.configuration.tensor;
  OpExplanation result;
  result.op = op;
  const int32_t chosen = plan.choices[op];
  result.choice = describeChoice(model.ops[op], chosen, tensor);
  result.costUs = local.kernelUs(op, forward) + local.resultUs(op, forward);
  result.boundBy = model.ops[op].pinnedChoice != notPinned ? "pin" : "no other choice";
  double best = std::numeric_limits<double>::infinity(), own = local.aroundUs(op, chosen, forward);
  for (int32_t choice : choicesOf(model.ops[op], tensor)) {
    double us = choice == chosen ? best : local.aroundUs(op, choice, forward);
    if (us < best) {
      best = us;
      result.runnerUp = describeChoice(model.ops[op], choice, tensor);
      result.runnerUpUs = us - own;
      result.boundBy = us < own ? "memory" : "cost";
    }
  }
  return result;
}

/// ", or --schedule interleaved, …": those that wait less than the plan's.
std::string otherSchedules(const Model &model, const Configuration &how) {
  std::string names;
  for (const ScheduleDescriptor *schedule : allSchedules()) {
    PipelineShape shape = how.shape();
    shape.chunksPerStage = schedule->chunksPerStage;
    if (model.isTraining && schedule->fillShare(shape) < how.schedule->fillShare(how.shape()))
      names += fmt::format("{}{}", names.empty() ? ", or --schedule " : ", ", schedule->name);
  }
  return names;
}

std::vector<StageExplanation> explainStages(const OpCosts &opCosts, const StepModel &step, const SearchedPlan &plan,
                                            const std::vector<uint32_t> &bounds) {
  const StepTable table(opCosts, plan.choices, bounds);
  const std::vector<uint32_t> &begins = plan.stages.begins;
  std::vector<StageExplanation> stages;
  for (uint32_t s = 0; s < begins.size(); ++s) {
    const uint32_t begin = begins[s], end = s + 1 < begins.size() ? begins[s + 1] : table.numOps();
    const bool isRecomputed = plan.stages.isRecomputed[s];
    const StageSums sums = table.sums(begin, end);
    const StageCost cost = step.stage(table, begin, end, s, isRecomputed);
    const double forwardUs = sums.forwardUs / step.speedOf(s);
    stages.push_back({begin, end, forwardUs, cost.stepUs - forwardUs, cost.syncUs, cost.bytes, isRecomputed});
  }
  return stages;
}

std::string times(uint32_t count) { return count > 1 ? fmt::format(" (×{})", count) : ""; }

} // namespace

std::string describeChoice(const ModelOp &op, int32_t choice, uint32_t tensor) {
  if (choice == uncut)
    return "whole";
  if (choice == carried)
    return "whole, gradient in summands";
  auto dimIn = [&](const std::vector<int32_t> &factors) {
    return int(std::find(factors.begin(), factors.end(), choice) - factors.begin());
  };
  std::string text;
  auto add = [&](const std::string &what, const std::vector<int32_t> &factors) {
    if (int dim = dimIn(factors); dim < int(factors.size()))
      text += fmt::format("{}dimension {} of {}", text.empty() ? "" : ", ", dim, what);
  };
  for (const ModelParameter &parameter : op.parameters)
    add(parameter.name, parameter.factors);
  for (size_t i = 0; i < op.operands.size(); ++i)
    add(fmt::format("operand {}", i), op.operands[i].factors);
  for (size_t i = 0; i < op.results.size(); ++i)
    add(op.results.size() > 1 ? fmt::format("result {}", i) : "the result", op.results[i].factors);
  bool isSummed = std::any_of(op.results.begin(), op.results.end(),
                              [&](const ModelUse &use) { return dimIn(use.factors) == int(use.factors.size()); });
  return fmt::format("cut {} ways: {}{}", tensor, text, isSummed ? "; the result is a sum" : "");
}

Explanation explain(const Model &model, const CostModel &costs, const SearchedPlan &plan) {
  const Configuration &how = plan.configuration;
  OpCosts opCosts(model, costs, {how.tensor, rowsOf(model, how), how.precision});
  LocalCosts local(opCosts, plan.choices);
  std::vector<uint32_t> bounds = findSegments(model), kinds = foldSegments(model, bounds);
  auto stageOf = [&](uint32_t op) {
    return uint32_t(std::upper_bound(plan.stages.begins.begin(), plan.stages.begins.end(), op) -
                    plan.stages.begins.begin() - 1);
  };
  Explanation result;
  result.stages = explainStages(opCosts, StepModel(model, costs, how), plan, bounds);
  // The slowest stage is where a saved microsecond counts.
  auto stageUs = [](const StageExplanation &stage) { return stage.forwardUs + stage.backwardUs; };
  const StageExplanation &slow =
      *std::max_element(result.stages.begin(), result.stages.end(),
                        [&](const StageExplanation &a, const StageExplanation &b) { return stageUs(a) < stageUs(b); });
  const uint32_t slowest = uint32_t(&slow - result.stages.data());
  std::map<std::pair<uint32_t, std::vector<int32_t>>, size_t> known;         // kind and choices -> block
  std::map<std::pair<std::string, bool>, std::pair<double, uint32_t>> items; // op, is it communication -> us, count
  for (size_t s = 0; s + 1 < bounds.size(); ++s) {
    std::vector<int32_t> own(plan.choices.begin() + bounds[s], plan.choices.begin() + bounds[s + 1]);
    auto [found, isNew] = known.try_emplace({kinds[s], own}, result.blocks.size());
    double forward = plan.stages.isRecomputed[stageOf(bounds[s])] ? 2 : 1;
    if (isNew) {
      BlockExplanation block{bounds[s], bounds[s + 1] - bounds[s], 0, 0, {}};
      for (uint32_t op = bounds[s]; op < bounds[s + 1]; ++op) {
        block.ops.push_back(explainOp(local, model, plan, op, forward));
        block.costUs += block.ops.back().costUs;
      }
      result.blocks.push_back(std::move(block));
    }
    BlockExplanation &block = result.blocks[found->second];
    ++block.count;
    for (uint32_t op = bounds[s]; op < bounds[s + 1]; ++op) {
      if (stageOf(op) != slowest)
        continue;
      const std::string &name = model.ops[block.firstOp + (op - bounds[s])].name;
      for (bool isComm : {false, true})
        if (double us = isComm ? local.resultUs(op, forward) : local.kernelUs(op, forward); us > 0) {
          auto &[sum, count] = items[{name, isComm}];
          sum += us * how.microbatches;
          ++count;
        }
    }
  }
  for (const auto &[key, item] : items)
    result.largest.push_back({fmt::format("{} of {}{}", key.second ? "collectives after the result" : "kernels",
                                          key.first, times(item.second)),
                              item.first,
                              key.second ? "a smaller tensor axis, or faster links inside a node"
                                         : "more devices, a larger tensor axis, or a lower precision"});
  if (how.pipe > 1)
    result.largest.push_back({"waiting for other stages",
                              std::max(0.0, plan.stages.stepUs - how.microbatches * stageUs(slow) - slow.syncUs),
                              "more micro-batches or fewer stages" + otherSchedules(model, how)});
  result.largest.push_back({"gradients over the data axis and update", slow.syncUs,
                            "a larger batch, fewer data ranks, or sharded optimizer state (zero 1)"});
  std::sort(result.largest.begin(), result.largest.end(), [](const CostItem &a, const CostItem &b) {
    return std::make_pair(-a.stepUs, a.what) < std::make_pair(-b.stepUs, b.what);
  });
  result.largest.resize(std::min(result.largest.size(), numLargest));
  bool isRecomputed = std::count(plan.stages.isRecomputed.begin(), plan.stages.isRecomputed.end(), 1) > 0;
  bool isByMemory = std::any_of(result.blocks.begin(), result.blocks.end(), [](const BlockExplanation &block) {
    return std::any_of(block.ops.begin(), block.ops.end(),
                       [](const OpExplanation &op) { return op.boundBy == "memory"; });
  });
  result.binding = isRecomputed ? "memory: some stages compute their forward pass again"
                   : isByMemory ? "memory: some ops are cut although that is slower"
                                : "time alone: everything fits as it is fastest";
  return result;
}

} // namespace dg::partitioner
