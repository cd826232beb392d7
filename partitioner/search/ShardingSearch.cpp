// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/ShardingSearch.h"

#include "partitioner/search/Elimination.h"

#include <algorithm>
#include <limits>
#include <map>

namespace dg::partitioner {

namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();
constexpr uint32_t isFree = UINT32_MAX;
/// A value with more readers gets its needs collected one reader at a time.
constexpr size_t maxReadersInTable = 3;

std::vector<std::vector<uint32_t>> collectReaders(const Model &model) {
  std::vector<std::vector<uint32_t>> readers(model.values.size());
  for (uint32_t op = 0; op < model.ops.size(); ++op)
    for (const ModelUse &use : model.ops[op].operands)
      if (readers[use.value].empty() || readers[use.value].back() != op)
        readers[use.value].push_back(op);
  return readers;
}

double opObjective(const OpCost &cost, const ShardingPrices &prices) {
  return prices.time * (prices.forward * cost.forwardUs + cost.inputGradientUs + cost.weightGradientUs) +
         prices.usPerParameterElement * cost.parameterElements + prices.usPerSavedByte * cost.savedBytes;
}

/// Layouts that do not go together stay impossible where time does not count.
double reshardObjective(const ReshardCost &cost, const ShardingPrices &prices) {
  double us = prices.forward * cost.forwardUs + cost.backwardUs;
  return us == impossible ? impossible : prices.time * us;
}

Needs needsOf(const ModelOp &reader, uint32_t value, int32_t choice) {
  Needs needs = 0;
  for (const ModelUse &use : reader.operands)
    if (use.value == value)
      needs |= needOf(use, choice);
  return needs;
}

/// One segment as variables and cost tables. The first variable is the op in front of it, where there is one.
class SegmentProblem {
public:
  SegmentProblem(const OpCosts &costs, const ShardingPrices &prices, uint32_t begin, uint32_t end,
                 const std::vector<std::vector<uint32_t>> &readersOf)
      : costs(costs), prices(prices), first(begin > 0 ? begin - 1 : 0) {
    for (uint32_t op = first; op < end; ++op) {
      choices.push_back(choicesOf(model().ops[op], costs.division().tensor));
      domains.push_back(uint32_t(choices.back().size()));
    }
    for (uint32_t op = begin; op < end; ++op) {
      CostTable table{{variableOf(op)}, {}};
      for (int32_t choice : choices[variableOf(op)])
        table.costs.push_back(opObjective(costs.of(op, choice), prices));
      tables.push_back(std::move(table));
    }
    for (uint32_t op = first; op < end; ++op)
      for (const ModelUse &use : model().ops[op].results)
        if (const auto &readers = readersOf[use.value];
            !readers.empty() && readers.front() >= begin && readers.front() < end)
          addValue(use.value, op, readers);
  }

  std::vector<std::vector<int32_t>> choices;
  std::vector<uint32_t> domains;
  std::vector<CostTable> tables;

private:
  const Model &model() const { return costs.model(); }
  uint32_t variableOf(uint32_t op) const { return op - first; }
  double reshardUs(uint32_t value, int32_t choice, Needs needs) const {
    return reshardObjective(costs.reshard(value, choice, needs), prices);
  }

  void addValue(uint32_t value, uint32_t producer, const std::vector<uint32_t> &readers) {
    const std::vector<int32_t> &made = choices[variableOf(producer)];
    if (readers.size() > maxReadersInTable)
      return collectNeeds(value, producer, readers);
    CostTable table{{variableOf(producer)}, {}};
    for (uint32_t reader : readers)
      table.variables.push_back(variableOf(reader));
    std::vector<Needs> needs = {0}; // of all combinations of the readers, the last moving fastest
    for (uint32_t reader : readers) {
      std::vector<Needs> longer;
      for (Needs before : needs)
        for (int32_t choice : choices[variableOf(reader)])
          longer.push_back(before | needsOf(model().ops[reader], value, choice));
      needs = std::move(longer);
    }
    for (int32_t choice : made)
      for (Needs all : needs)
        table.costs.push_back(reshardUs(value, choice, all));
    tables.push_back(std::move(table));
  }

  /// A variable for the needs of the first k readers, for each k, tied together by tables of 0 and infinity.
  void collectNeeds(uint32_t value, uint32_t producer, const std::vector<uint32_t> &readers) {
    std::vector<Needs> before = {0};
    uint32_t beforeVariable = isFree;
    for (uint32_t reader : readers) {
      const std::vector<int32_t> &own = choices[variableOf(reader)];
      std::vector<Needs> after;
      for (Needs needs : before)
        for (int32_t choice : own)
          after.push_back(needs | needsOf(model().ops[reader], value, choice));
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      uint32_t afterVariable = uint32_t(domains.size());
      domains.push_back(uint32_t(after.size()));
      // Variables of a table increase: reader, (before), after.
      CostTable table{{variableOf(reader)}, {}};
      if (beforeVariable != isFree)
        table.variables.push_back(beforeVariable);
      table.variables.push_back(afterVariable);
      for (int32_t choice : own)
        for (Needs needs : before)
          for (Needs all : after)
            table.costs.push_back((needs | needsOf(model().ops[reader], value, choice)) == all ? 0 : impossible);
      tables.push_back(std::move(table));
      before = std::move(after);
      beforeVariable = afterVariable;
    }
    CostTable table{{variableOf(producer), beforeVariable}, {}};
    for (int32_t choice : choices[variableOf(producer)])
      for (Needs all : before)
        table.costs.push_back(reshardUs(value, choice, all));
    tables.push_back(std::move(table));
  }

  const OpCosts &costs;
  const ShardingPrices &prices;
  uint32_t first;
};

/// The best inside of a segment for each choice of the op in front of it and of its last op.
struct SegmentAnswer {
  uint32_t numIn = 1, numOut = 1;
  std::vector<Elimination> best; ///< [in * numOut + out]
};

SegmentAnswer solveSegment(const SegmentProblem &problem, bool hasFront, uint32_t lastVariable) {
  SegmentAnswer answer;
  answer.numIn = hasFront ? problem.domains.front() : 1;
  answer.numOut = problem.domains[lastVariable];
  std::vector<uint32_t> fixed(problem.domains.size(), isFree);
  for (uint32_t in = 0; in < answer.numIn; ++in)
    for (uint32_t out = 0; out < answer.numOut; ++out) {
      if (hasFront)
        fixed[0] = in;
      fixed[lastVariable] = out;
      answer.best.push_back(eliminate(problem.domains, problem.tables, fixed));
    }
  return answer;
}

} // namespace

ShardingSearch::ShardingSearch(const Model &source)
    : model(source), segmentBounds(findSegments(source)), segmentKinds(foldSegments(source, segmentBounds)),
      readersOf(collectReaders(source)) {
  for (uint32_t kind : segmentKinds)
    kindCount = std::max(kindCount, kind + 1);
}

Shardings ShardingSearch::solve(const OpCosts &costs, const ShardingPrices &prices) const {
  const size_t numSegments = segmentKinds.size();
  std::vector<SegmentAnswer> answers(kindCount);
  std::vector<std::vector<std::vector<int32_t>>> choices(kindCount);
  // best[s][out]: the prefix up to segment s whose last op has choice `out`.
  std::vector<std::vector<double>> best(numSegments), bound(numSegments);
  std::vector<std::vector<uint32_t>> from(numSegments);
  for (size_t s = 0; s < numSegments; ++s) {
    const uint32_t begin = segmentBounds[s], end = segmentBounds[s + 1];
    SegmentAnswer &answer = answers[segmentKinds[s]];
    if (answer.best.empty()) {
      SegmentProblem problem(costs, prices, begin, end, readersOf);
      answer = solveSegment(problem, begin > 0, end - 1 - (begin > 0 ? begin - 1 : 0));
      choices[segmentKinds[s]] = std::move(problem.choices);
    }
    best[s].assign(answer.numOut, impossible);
    bound[s].assign(answer.numOut, impossible);
    from[s].assign(answer.numOut, 0);
    for (uint32_t in = 0; in < answer.numIn; ++in)
      for (uint32_t out = 0; out < answer.numOut; ++out) {
        const Elimination &inside = answer.best[in * answer.numOut + out];
        double total = inside.cost + (s > 0 ? best[s - 1][in] : 0);
        if (total < best[s][out]) {
          best[s][out] = total;
          from[s][out] = in;
        }
        bound[s][out] = std::min(bound[s][out], inside.lowerBound + (s > 0 ? bound[s - 1][in] : 0));
      }
  }
  Shardings result;
  result.choices.assign(model.ops.size(), uncut);
  uint32_t out = uint32_t(std::min_element(best.back().begin(), best.back().end()) - best.back().begin());
  result.objective = best.back()[out];
  result.lowerBound = *std::min_element(bound.back().begin(), bound.back().end());
  for (size_t s = numSegments; s-- > 0;) {
    const SegmentAnswer &answer = answers[segmentKinds[s]];
    uint32_t in = from[s][out], front = segmentBounds[s] > 0 ? 1 : 0;
    const Elimination &inside = answer.best[in * answer.numOut + out];
    for (uint32_t op = segmentBounds[s]; op < segmentBounds[s + 1]; ++op) {
      uint32_t variable = op - segmentBounds[s] + front;
      result.choices[op] = choices[segmentKinds[s]][variable][inside.assignment[variable]];
    }
    out = in;
  }
  return result;
}

std::vector<double> ShardingSearch::boundSegments(const OpCosts &costs, const ShardingPrices &prices) const {
  std::vector<double> ofKind(kindCount, -1), result;
  for (size_t s = 0; s < segmentKinds.size(); ++s) {
    double &least = ofKind[segmentKinds[s]];
    if (least < 0) {
      SegmentProblem problem(costs, prices, segmentBounds[s], segmentBounds[s + 1], readersOf);
      least =
          eliminate(problem.domains, problem.tables, std::vector<uint32_t>(problem.domains.size(), isFree)).lowerBound;
    }
    result.push_back(least);
  }
  return result;
}

double shardingObjective(const OpCosts &costs, const ShardingPrices &prices, const std::vector<int32_t> &choices) {
  const Model &model = costs.model();
  double sum = 0;
  std::vector<Needs> needs(model.values.size(), 0);
  for (uint32_t op = 0; op < model.ops.size(); ++op) {
    sum += opObjective(costs.of(op, choices[op]), prices);
    for (const ModelUse &use : model.ops[op].operands)
      needs[use.value] |= needOf(use, choices[op]);
  }
  for (uint32_t value = 0; value < model.values.size(); ++value)
    if (uint32_t producer = model.values[value].producer; producer != noOp && needs[value] != 0) {
      sum += reshardObjective(costs.reshard(value, choices[producer], needs[value]), prices);
    }
  return sum;
}

} // namespace dg::partitioner
