// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/Elimination.h"

#include <algorithm>
#include <limits>
#include <set>

namespace dg::partitioner {

namespace {

/// Walks all combinations of `variables`; `at` gives the index into a table over a subset of them.
class Odometer {
public:
  Odometer(const std::vector<uint32_t> &variables, const std::vector<uint32_t> &domains)
      : variables(variables), domains(domains), digits(variables.size(), 0) {}
  bool next() {
    for (size_t i = digits.size(); i-- > 0;) {
      if (++digits[i] < domains[variables[i]])
        return true;
      digits[i] = 0;
    }
    return false;
  }
  /// How far a step of each digit moves in a table over `subset`.
  std::vector<uint64_t> stridesIn(const std::vector<uint32_t> &subset) const {
    std::vector<uint64_t> strides(variables.size(), 0);
    uint64_t stride = 1;
    for (size_t i = subset.size(); i-- > 0;) {
      strides[std::lower_bound(variables.begin(), variables.end(), subset[i]) - variables.begin()] = stride;
      stride *= domains[subset[i]];
    }
    return strides;
  }
  uint64_t at(const std::vector<uint64_t> &strides) const {
    uint64_t index = 0;
    for (size_t i = 0; i < digits.size(); ++i)
      index += digits[i] * strides[i];
    return index;
  }

private:
  const std::vector<uint32_t> &variables;
  const std::vector<uint32_t> &domains;
  std::vector<uint32_t> digits;
};

/// What was decided about a variable when it was eliminated: its best value for each combination of the others.
struct Decision {
  uint32_t variable = 0;
  std::vector<uint32_t> others;
  std::vector<uint32_t> best;
};

class Eliminator {
public:
  Eliminator(const std::vector<uint32_t> &sizes, uint64_t maxTableSize)
      : domains(sizes), limit(maxTableSize), users(sizes.size()) {}

  void add(CostTable table) {
    if (table.variables.empty()) {
      bound += table.costs.front();
      return;
    }
    uint32_t id = uint32_t(tables.size());
    for (uint32_t variable : table.variables)
      users[variable].insert(id);
    tables.push_back(std::move(table));
  }

  Elimination run() {
    std::vector<uint8_t> isDone(domains.size(), 0);
    std::set<std::pair<double, uint32_t>> queue; // size of the resulting table, variable
    std::vector<double> sizes(domains.size());
    for (uint32_t v = 0; v < domains.size(); ++v)
      queue.insert({sizes[v] = resultSize(v), v});
    while (!queue.empty()) {
      uint32_t variable = queue.begin()->second;
      queue.erase(queue.begin());
      isDone[variable] = 1;
      for (uint32_t other : remove(variable))
        if (!isDone[other]) {
          queue.erase({sizes[other], other});
          queue.insert({sizes[other] = resultSize(other), other});
        }
    }
    Elimination result;
    result.lowerBound = bound;
    result.isExact = isExact;
    result.assignment.assign(domains.size(), 0);
    for (auto decision = decisions.rbegin(); decision != decisions.rend(); ++decision) {
      uint64_t index = 0;
      for (uint32_t other : decision->others)
        index = index * domains[other] + result.assignment[other];
      result.assignment[decision->variable] = decision->best[index];
    }
    return result;
  }

private:
  std::vector<uint32_t> scopeOf(const std::vector<uint32_t> &ids, uint32_t without) const {
    std::vector<uint32_t> scope;
    for (uint32_t id : ids)
      scope.insert(scope.end(), tables[id].variables.begin(), tables[id].variables.end());
    std::sort(scope.begin(), scope.end());
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    scope.erase(std::remove(scope.begin(), scope.end(), without), scope.end());
    return scope;
  }
  double sizeOf(const std::vector<uint32_t> &scope) const {
    double size = 1;
    for (uint32_t variable : scope)
      size *= domains[variable];
    return size;
  }
  double resultSize(uint32_t variable) const {
    return sizeOf(scopeOf({users[variable].begin(), users[variable].end()}, variable));
  }

  /// Eliminates a variable; returns those whose neighbourhood changed.
  std::vector<uint32_t> remove(uint32_t variable) {
    std::vector<uint32_t> bucket(users[variable].begin(), users[variable].end());
    std::vector<uint32_t> touched = scopeOf(bucket, variable);
    for (uint32_t id : bucket)
      for (uint32_t user : tables[id].variables)
        users[user].erase(id);
    // Mini-buckets: tables in order, as long as the result stays small enough.
    bool isFirst = true;
    for (size_t i = 0; i < bucket.size() || isFirst;) {
      std::vector<uint32_t> part;
      while (i < bucket.size()) {
        part.push_back(bucket[i]);
        if (part.size() > 1 && sizeOf(scopeOf(part, variable)) > double(limit)) {
          part.pop_back();
          break;
        }
        ++i;
      }
      if (!isFirst)
        isExact = false;
      minimise(variable, part, isFirst);
      isFirst = false;
    }
    return touched;
  }

  /// Adds the tables of a mini-bucket up and takes the minimum over the variable. The first one decides its value.
  void minimise(uint32_t variable, const std::vector<uint32_t> &part, bool isDeciding) {
    std::vector<uint32_t> scope = scopeOf(part, variable);
    CostTable made{scope, std::vector<double>(size_t(sizeOf(scope)))};
    Decision decision{variable, scope, std::vector<uint32_t>(made.costs.size())};
    Odometer odometer(scope, domains);
    std::vector<std::vector<uint64_t>> strides;
    std::vector<uint64_t> ownStride;
    for (uint32_t id : part) {
      std::vector<uint64_t> own(scope.size(), 0);
      uint64_t stride = 1, step = 0;
      for (size_t i = tables[id].variables.size(); i-- > 0;) {
        uint32_t user = tables[id].variables[i];
        if (user == variable)
          step = stride;
        else
          own[std::lower_bound(scope.begin(), scope.end(), user) - scope.begin()] = stride;
        stride *= domains[user];
      }
      strides.push_back(std::move(own));
      ownStride.push_back(step);
    }
    size_t index = 0;
    do {
      double best = std::numeric_limits<double>::infinity();
      uint32_t bestValue = 0;
      for (uint32_t value = 0; value < domains[variable]; ++value) {
        double sum = 0;
        for (size_t i = 0; i < part.size(); ++i)
          sum += tables[part[i]].costs[odometer.at(strides[i]) + value * ownStride[i]];
        if (sum < best) {
          best = sum;
          bestValue = value;
        }
      }
      made.costs[index] = best;
      decision.best[index++] = bestValue;
    } while (odometer.next());
    for (uint32_t id : part)
      tables[id].costs = {};
    if (isDeciding)
      decisions.push_back(std::move(decision));
    add(std::move(made));
  }

  const std::vector<uint32_t> &domains;
  uint64_t limit;
  std::vector<std::set<uint32_t>> users; ///< per variable: the tables that name it
  std::vector<CostTable> tables;
  std::vector<Decision> decisions;
  double bound = 0;
  bool isExact = true;
};

double costOf(const std::vector<uint32_t> &domains, const std::vector<CostTable> &tables,
              const std::vector<uint32_t> &assignment) {
  double cost = 0;
  for (const CostTable &table : tables) {
    uint64_t index = 0;
    for (uint32_t variable : table.variables)
      index = index * domains[variable] + assignment[variable];
    cost += table.costs[index];
  }
  return cost;
}

/// The table with the variables in `fixed` taken at their values.
CostTable restricted(const CostTable &table, const std::vector<uint32_t> &domains, const std::vector<uint32_t> &fixed) {
  CostTable result;
  for (uint32_t variable : table.variables)
    if (fixed[variable] == UINT32_MAX)
      result.variables.push_back(variable);
  if (result.variables.size() == table.variables.size())
    return table;
  Odometer odometer(table.variables, domains);
  std::vector<std::vector<uint64_t>> digit;
  for (uint32_t variable : table.variables)
    digit.push_back(odometer.stridesIn({variable}));
  size_t index = 0;
  do {
    bool isKept = true;
    for (size_t i = 0; i < table.variables.size(); ++i)
      if (uint32_t value = fixed[table.variables[i]]; value != UINT32_MAX && odometer.at(digit[i]) != value)
        isKept = false;
    if (isKept)
      result.costs.push_back(table.costs[index]);
    ++index;
  } while (odometer.next());
  return result;
}

} // namespace

Elimination eliminate(const std::vector<uint32_t> &domains, const std::vector<CostTable> &tables,
                      const std::vector<uint32_t> &fixed, uint64_t maxTableSize) {
  Eliminator eliminator(domains, maxTableSize);
  for (const CostTable &table : tables)
    eliminator.add(restricted(table, domains, fixed));
  Elimination result = eliminator.run();
  for (size_t v = 0; v < domains.size(); ++v)
    if (fixed[v] != UINT32_MAX)
      result.assignment[v] = fixed[v];
  result.cost = costOf(domains, tables, result.assignment);
  if (result.isExact)
    result.lowerBound = result.cost;
  return result;
}

} // namespace dg::partitioner
