// SPDX-License-Identifier: Apache-2.0
// Proves pins and conflicts against exhaustive enumeration: the plan within pins is the optimum of all plans that meet
// them, and where there is none the set of constraints that is named is the smallest, and the bytes that are missing
// are those that the smallest plan needs.
#include "partitioner/search/Conflict.h"
#include "tests/unit/partitioner/RandomModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

using namespace dg;
using namespace dg::partitioner;

namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

/// The least time and the least memory of all plans that meet the pins and axes of the options, whatever their memory.
struct Best {
  double stepUs = impossible, peakBytes = impossible;
};

class Enumeration {
public:
  Enumeration(const Model &model, const CostModel &costs, const SearchOptions &options, double memoryBytes)
      : model(model), costs(costs), options(options), memoryBytes(memoryBytes) {}

  Best run() {
    auto isAllowed = [&](const char *axis, uint32_t size, uint32_t given) {
      bool isForbidden = std::count(options.forbiddenAxes.begin(), options.forbiddenAxes.end(), axis) > 0;
      return (given == 0 || given == size) && (size == 1 || !isForbidden);
    };
    for (uint32_t data : {1, 2, 4})
      for (uint32_t tensor : {1, 2, 4})
        for (uint32_t pipe : {1, 2, 4})
          for (uint32_t m : {1, 2, 4}) {
            bool isMesh = data * tensor * pipe == options.numRanks && int64_t(m) * data <= model.numSamples;
            if (!isMesh || !isAllowed("data", data, options.data) || !isAllowed("tensor", tensor, options.tensor) ||
                !isAllowed("pipe", pipe, options.pipe))
              continue;
            Configuration configuration;
            configuration.data = data;
            configuration.tensor = tensor;
            configuration.pipe = pipe;
            configuration.microbatches = m;
            visit(configuration);
          }
    return best;
  }

private:
  void visit(const Configuration &configuration) {
    OpCosts opCosts(model, costs, {configuration.tensor, rowsOf(model, configuration), configuration.precision});
    StepModel step(model, costs, configuration);
    std::vector<int32_t> choices(model.ops.size());
    std::function<void(uint32_t)> choose = [&](uint32_t op) {
      if (op < model.ops.size()) {
        for (int32_t choice : choicesOf(model.ops[op], configuration.tensor)) {
          choices[op] = choice;
          if (meets(op, [](const Pin::Target &target) { return target.choice; }, choice))
            choose(op + 1);
        }
        return;
      }
      StepTable table(opCosts, choices, bounds);
      cut(step, table, {0});
    };
    choose(0);
  }

  template <typename Field> bool meets(uint32_t op, Field field, int32_t value) const {
    for (const Pin &pin : options.pins)
      for (const Pin::Target &target : pin.targets)
        if (target.op == op && field(target) != notPinned && field(target) != value)
          return false;
    return true;
  }

  void cut(const StepModel &step, const StepTable &table, std::vector<uint32_t> begins) {
    uint32_t pipe = step.configuration().pipe;
    if (begins.size() < pipe) {
      for (uint32_t next = begins.back() + 1; next < table.numOps(); ++next) {
        begins.push_back(next);
        cut(step, table, begins);
        begins.pop_back();
      }
      return;
    }
    for (uint32_t op = 0; op < model.ops.size(); ++op) {
      auto stage = int32_t(std::upper_bound(begins.begin(), begins.end(), op) - begins.begin() - 1);
      if (!meets(op, [](const Pin::Target &target) { return target.stage; }, stage))
        return;
    }
    for (uint32_t mask = 0; mask < (1u << pipe); ++mask) {
      std::vector<uint8_t> recomputed(pipe);
      for (uint32_t s = 0; s < pipe; ++s)
        recomputed[s] = mask >> s & 1;
      StagePlan plan = evaluate(step, table, begins, recomputed);
      if (plan.stepUs == impossible)
        continue;
      best.peakBytes = std::min(best.peakBytes, plan.peakBytes);
      if (plan.peakBytes <= memoryBytes)
        best.stepUs = std::min(best.stepUs, plan.stepUs);
    }
  }

  const Model &model;
  const CostModel &costs;
  const SearchOptions &options;
  double memoryBytes;
  std::vector<uint32_t> bounds = findSegments(model);
  Best best;
};

/// Pins of one or two ops each, forbidden axes and a limit of memory, at random.
SearchOptions randomConstraints(std::mt19937_64 &random, const Model &model, double leastBytes) {
  SearchOptions options;
  options.numRanks = 4;
  for (uint64_t i = 0, n = random() % 3; i < n; ++i) {
    Pin pin;
    pin.text = "pin" + std::to_string(i);
    for (uint64_t k = 0, m = 1 + random() % 2; k < m; ++k) {
      Pin::Target target;
      target.op = uint32_t(random() % model.ops.size());
      std::vector<int32_t> choices = choicesOf(model.ops[target.op], 2);
      if (random() % 2)
        target.stage = int32_t(random() % 3);
      else
        target.choice = choices[random() % choices.size()];
      if (target.choice != carried) // no user can ask for it
        pin.targets.push_back(target);
    }
    options.pins.push_back(pin);
  }
  for (const char *axis : {"data", "tensor", "pipe"})
    if (random() % 4 == 0)
      options.forbiddenAxes.push_back(axis);
  options.memoryBytes = leastBytes * (0.8 + 0.1 * double(random() % 8));
  return options;
}

} // namespace

TEST(Conflict, EqualsExhaustiveSearch) {
  uint64_t numPlans = 0, numEqual = 0, numConflicts = 0, numWithMemory = 0;
  std::vector<uint64_t> sizes(8);
  for (uint64_t seed = 0; seed < 120; ++seed) {
    std::mt19937_64 random(seed);
    Model model = randomModel(random, 5, 4);
    bool hasWeight =
        std::any_of(model.ops.begin(), model.ops.end(), [](const ModelOp &op) { return !op.parameters.empty(); });
    if (!hasWeight)
      continue; // a tensor axis is not tried without a weight to cut
    CostModel costs(hostCluster(4));
    SearchOptions free;
    free.numRanks = 4;
    const double leastBytes = Enumeration(model, costs, free, impossible).run().peakBytes;
    SearchOptions options = randomConstraints(random, model, leastBytes);
    Best best = Enumeration(model, costs, options, options.memoryBytes).run();
    Result<SearchResult> found = searchPlan(model, costs, options);
    if (best.stepUs < impossible) {
      ASSERT_TRUE(found) << "seed " << seed << ": " << found.status().message();
      ++numPlans;
      EXPECT_GE(found->best.stages.stepUs, best.stepUs * (1 - 1e-9)) << "seed " << seed;
      EXPECT_LE(found->best.stages.stepUs, best.stepUs * 1.05) << "seed " << seed;
      EXPECT_LE(found->lowerBoundUs, best.stepUs * (1 + 1e-9)) << "seed " << seed;
      numEqual += found->best.stages.stepUs <= best.stepUs * (1 + 1e-9);
      for (const Pin &pin : options.pins)
        for (const Pin::Target &target : pin.targets) {
          const std::vector<uint32_t> &begins = found->best.stages.begins;
          auto stage = std::upper_bound(begins.begin(), begins.end(), target.op) - begins.begin() - 1;
          EXPECT_TRUE(target.stage == notPinned || target.stage == stage) << "seed " << seed;
          EXPECT_TRUE(target.choice == notPinned || target.choice == found->best.choices[target.op]) << "seed " << seed;
        }
      continue;
    }
    ASSERT_FALSE(found) << "seed " << seed;
    ++numConflicts;
    // The smallest infeasible subset, by trying all of them; memory is the last.
    const size_t n = options.pins.size() + options.forbiddenAxes.size() + 1;
    size_t smallest = n + 1;
    auto optionsOf = [&](uint32_t mask) {
      SearchOptions own;
      own.numRanks = 4;
      for (size_t i = 0; i + 1 < n; ++i)
        if (mask >> i & 1) {
          if (i < options.pins.size())
            own.pins.push_back(options.pins[i]);
          else
            own.forbiddenAxes.push_back(options.forbiddenAxes[i - options.pins.size()]);
        }
      return own;
    };
    for (uint32_t mask = 1; mask < (1u << n); ++mask) {
      if (size_t(std::popcount(mask)) >= smallest)
        continue;
      SearchOptions own = optionsOf(mask);
      bool hasMemory = mask >> (n - 1) & 1;
      if (Enumeration(model, costs, own, impossible).run().peakBytes > (hasMemory ? options.memoryBytes : 1e300))
        smallest = size_t(std::popcount(mask));
    }
    std::optional<Conflict> conflict = findConflict(model, costs, options);
    ASSERT_TRUE(conflict) << "seed " << seed;
    EXPECT_EQ(conflict->constraints.size(), smallest) << "seed " << seed << ": " << found.status().message();
    sizes[conflict->constraints.size()] += 1;
    // What is named is a conflict, and its bytes are those of the smallest plan that meets the others.
    uint32_t named = 0;
    for (size_t i = 0; i + 1 < n; ++i) {
      std::string name = i < options.pins.size() ? "--pin '" + options.pins[i].text + "'"
                                                 : "--forbid " + options.forbiddenAxes[i - options.pins.size()];
      named |= std::count(conflict->constraints.begin(), conflict->constraints.end(), name) ? 1u << i : 0;
    }
    SearchOptions own = optionsOf(named);
    double needed = Enumeration(model, costs, own, impossible).run().peakBytes;
    if (conflict->neededBytes) {
      ++numWithMemory;
      EXPECT_NEAR(*conflict->neededBytes, needed, 1e-9 * needed) << "seed " << seed;
      EXPECT_GT(needed, options.memoryBytes) << "seed " << seed;
    } else {
      EXPECT_EQ(needed, impossible) << "seed " << seed;
    }
  }
  std::printf("%lu plans within constraints, %lu optimal; %lu conflicts (%lu with memory) of 1, 2, 3 constraints: %lu, "
              "%lu, %lu\n",
              numPlans, numEqual, numConflicts, numWithMemory, sizes[1], sizes[2], sizes[3]);
  EXPECT_GE(numPlans, 20u);
  EXPECT_GE(double(numEqual), 0.95 * double(numPlans));
  EXPECT_GE(sizes[1], 5u);
  EXPECT_GE(sizes[2], 5u);
}

// The words of a message: constraints as they were given, bytes, what to do.
TEST(Conflict, SpeaksOfWhatWasGiven) {
  SearchOptions options;
  options.numRanks = 4;
  EXPECT_EQ(describeConflict({{"--pin 'a=stage:1'", "--forbid pipe"}, {}, 0}, options).message(),
            "no plan for 4 ranks meets --pin 'a=stage:1', --forbid pipe together: leave out or change one of them");
  EXPECT_EQ(describeConflict({{"--pin 'a=tensor:0'"}, {}, 0}, options).message(),
            "no plan for 4 ranks meets --pin 'a=tensor:0': leave out or change it");
  EXPECT_EQ(describeConflict({{"--forbid pipe", "--memory 1000"}, 3000.0, 1000}, options).message(),
            "no plan for 4 ranks fits into --memory 1000 with --forbid pipe: the least that one needs is 3000 bytes a "
            "rank, 2000 more (0.00 GiB); give more ranks, more --memory, fewer constraints or a smaller batch");
}
