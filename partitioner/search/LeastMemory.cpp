// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/LeastMemory.h"

namespace dg::partitioner {

/// Models up to this size have every choice tried against the others.
static constexpr size_t maxOpsRefined = 48;
static constexpr int maxRefinements = 4;

std::optional<LeastMemory> findLeastMemory(const Model &model, const CostModel &costs, const ShardingSearch &shardings,
                                           const Configuration &configuration, Recompute recompute) {
  OpCosts opCosts(model, costs, {configuration.tensor, rowsOf(model, configuration), configuration.precision});
  StepModel step(model, costs, configuration);
  auto peakOf = [&](const std::vector<int32_t> &choices) {
    StepTable table(opCosts, choices, shardings.bounds());
    return leastStageBytes(step, table, stageStarts(model, table, shardings.bounds(), configuration.pipe), recompute);
  };
  ShardingPrices prices;
  prices.time = 0;
  prices.usPerParameterElement = step.bytesPerParameter();
  prices.usPerSavedByte = step.slotsOf(0);
  LeastMemory least;
  least.choices = shardings.solve(opCosts, prices).choices;
  std::optional<double> peak = peakOf(least.choices);
  if (!peak)
    return std::nullopt;
  least.peakBytes = *peak;
  bool isBetter = configuration.tensor > 1 && model.ops.size() <= maxOpsRefined;
  for (int round = 0; round < maxRefinements && isBetter; ++round) {
    isBetter = false;
    for (uint32_t op = 0; op < model.ops.size(); ++op)
      for (int32_t choice : choicesOf(model.ops[op], configuration.tensor)) {
        std::vector<int32_t> changed = least.choices;
        changed[op] = choice;
        if (std::optional<double> bytes = peakOf(changed); bytes && *bytes < least.peakBytes * (1 - 1e-12)) {
          least = {std::move(changed), *bytes};
          isBetter = true;
        }
      }
  }
  return least;
}

} // namespace dg::partitioner
