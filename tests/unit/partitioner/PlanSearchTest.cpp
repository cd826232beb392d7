// SPDX-License-Identifier: Apache-2.0
// Proves the search against exhaustive enumeration: shardings are the exact minimum, plans equal the optimum of all
// meshes, micro-batches, cuts, recomputations and shardings, and the bound is never above it.
#include "tests/unit/partitioner/Prediction.h"
#include "tests/unit/partitioner/RandomModel.h"
#include "tests/unit/partitioner/TimeLimit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

using namespace dg;
using namespace dg::partitioner;

/// Calls `visit` with every combination of choices.
template <typename Visit> static void forEachChoice(const Model &model, uint32_t tensor, Visit visit) {
  std::vector<std::vector<int32_t>> all;
  for (const ModelOp &op : model.ops)
    all.push_back(choicesOf(op, tensor));
  std::vector<size_t> digits(all.size(), 0);
  std::vector<int32_t> choices(all.size());
  while (true) {
    for (size_t i = 0; i < all.size(); ++i)
      choices[i] = all[i][digits[i]];
    visit(choices);
    size_t i = 0;
    while (i < digits.size() && ++digits[i] == all[i].size())
      digits[i++] = 0;
    if (i == digits.size())
      return;
  }
}

// Elimination over segments gives the least objective of all combinations, for models with branches and skips.
TEST(ShardingSearch, EqualsExhaustiveSearch) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Model model = randomModel(random, 4 + seed % 6, 8);
    ASSERT_TRUE(checkModel(model)) << checkModel(model).message();
    CostModel costs(hostCluster(4));
    OpCosts opCosts(model, costs, {2, 4, plan::DType::f32});
    ShardingPrices prices{double(1 + seed % 2), seed % 3 * 1e-3, seed % 5 * 1e-5};
    Shardings found = ShardingSearch(model).solve(opCosts, prices);
    double least = std::numeric_limits<double>::infinity();
    forEachChoice(model, 2, [&](const std::vector<int32_t> &choices) {
      least = std::min(least, shardingObjective(opCosts, prices, choices));
    });
    EXPECT_NEAR(found.objective, least, 1e-9 * least) << "seed " << seed;
    EXPECT_NEAR(shardingObjective(opCosts, prices, found.choices), least, 1e-9 * least) << "seed " << seed;
    EXPECT_LE(found.lowerBound, least * (1 + 1e-9)) << "seed " << seed;
  }
}

namespace {

/// The least step time of all plans of one configuration that fit; counts them.
struct Exhaustive {
  const Model &model;
  const CostModel &costs;
  double memoryBytes;
  double bestUs = std::numeric_limits<double>::infinity();
  uint64_t numPlans = 0, numTooLarge = 0;

  void visit(const Configuration &configuration, const std::vector<uint32_t> &bounds) {
    OpCosts opCosts(model, costs, {configuration.tensor, rowsOf(model, configuration), configuration.precision});
    StepModel step(model, costs, configuration);
    forEachChoice(model, configuration.tensor, [&](const std::vector<int32_t> &choices) {
      StepTable table(opCosts, choices, bounds);
      cut(step, table, {0});
    });
  }

private:
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
    for (uint32_t mask = 0; mask < (1u << pipe); ++mask) {
      std::vector<uint8_t> recomputed(pipe);
      for (uint32_t s = 0; s < pipe; ++s)
        recomputed[s] = mask >> s & 1;
      StagePlan plan = evaluate(step, table, begins, recomputed);
      ++numPlans;
      if (plan.peakBytes > memoryBytes)
        ++numTooLarge;
      else
        bestUs = std::min(bestUs, plan.stepUs);
    }
  }
};

} // namespace

// Random models on random clusters of 4 devices, memory binding in half of them: the plan is the optimum nearly always,
// never far from it, and the bound never above it. DG_TEST_CASES draws more.
TEST(PlanSearch, EqualsExhaustiveSearch) {
  const char *given = std::getenv("DG_TEST_CASES");
  const uint64_t numCases = given ? std::strtoull(given, nullptr, 10) : 60;
  uint64_t numEqual = 0, numReordered = 0, numBinding = 0, numInfeasible = 0, leastPlans = UINT64_MAX;
  double worst = 0, meanGap = 0;
  for (uint64_t seed = 0; seed < numCases; ++seed) {
    std::mt19937_64 random(seed);
    Model model = randomModel(random, 8, 8);
    Cluster cluster = hostCluster(4);
    if (random() % 2) {
      cluster.numNodes = 2;
      cluster.devicesPerNode = 2;
    }
    cluster.intraNode.bytesPerSecond *= double(1 + random() % 8);
    cluster.interNode.bytesPerSecond /= double(1 + random() % 8);
    cluster.device.launchUs = double(random() % 20);
    CostModel costs(cluster);
    SearchOptions options;
    options.numRanks = 4;
    options.memoryBytes = 1e18;
    Result<SearchResult> loose = searchPlan(model, costs, options);
    ASSERT_TRUE(loose) << loose.status().message();
    bool isBinding = seed % 2 == 0;
    if (isBinding) // less than the fastest plan needs
      options.memoryBytes = loose->best.stages.peakBytes * (0.7 + 0.25 * double(random() % 100) / 100);
    Exhaustive exhaustive{model, costs, options.memoryBytes};
    std::vector<uint32_t> bounds = findSegments(model);
    for (auto [data, tensor, pipe] : {std::tuple{4, 1, 1}, {2, 2, 1}, {2, 1, 2}, {1, 4, 1}, {1, 2, 2}, {1, 1, 4}})
      for (uint32_t m : {1, 2, 3, 4, 8}) { // all numbers of rows; others only add padding
        if (m * data > 8)
          continue;
        Configuration configuration;
        configuration.data = uint32_t(data);
        configuration.tensor = uint32_t(tensor);
        configuration.pipe = uint32_t(pipe);
        configuration.microbatches = m;
        exhaustive.visit(configuration, bounds);
      }
    leastPlans = std::min(leastPlans, exhaustive.numPlans);
    Result<SearchResult> found = searchPlan(model, costs, options);
    if (exhaustive.bestUs == std::numeric_limits<double>::infinity()) {
      ++numInfeasible;
      EXPECT_FALSE(found) << "seed " << seed;
      continue;
    }
    numBinding += isBinding;
    ASSERT_TRUE(found) << "seed " << seed << ": " << found.status().message();
    double excess = found->best.stages.stepUs / exhaustive.bestUs - 1;
    if (!found->best.order.empty()) // cut in another order than the model's, which the enumeration does not know
      ++numReordered;
    else
      EXPECT_GE(excess, -1e-9) << "seed " << seed;
    EXPECT_LE(found->lowerBoundUs, std::min(exhaustive.bestUs, found->best.stages.stepUs) * (1 + 1e-9))
        << "seed " << seed;
    EXPECT_LE(found->best.stages.peakBytes, options.memoryBytes) << "seed " << seed;
    numEqual += excess < 1e-9;
    if (excess > 0.02)
      std::printf("seed %lu: %s, %.2f %% above the optimum\n", seed, describe(found->best).c_str(), 100 * excess);
    worst = std::max(worst, excess);
    meanGap += found->gap / double(numCases);
  }
  std::printf(
      "%lu cases (%lu with binding memory, %lu without a plan), at least %lu plans each: %lu optimal (%lu plans "
      "in an order of their own), worst %.2f %% above, mean gap %.2f %%\n",
      numCases, numBinding, numInfeasible, leastPlans, numEqual, numReordered, 100 * worst, 100 * meanGap);
  EXPECT_GE(leastPlans, 10000u);
  EXPECT_GE(double(numEqual), 0.95 * double(numCases - numInfeasible));
  EXPECT_LE(worst, 0.05);
}

// A tensor axis that is asked for cuts at least half of what it can cut, mostly at the least time at which that is
// possible, over links so slow that the fastest plan cuts nothing. Prices find no set of weights that only a knapsack
// would, so that some plans are slower.
TEST(PlanSearch, ATensorAxisByHandIsUsed) {
  constexpr uint64_t numCases = 40;
  double worst = 0, mean = 0;
  uint64_t numUncut = 0;
  for (uint64_t seed = 0; seed < numCases; ++seed) {
    std::mt19937_64 random(seed);
    Model model = randomModel(random, 7, 8);
    Cluster cluster = hostCluster(4);
    cluster.intraNode.bytesPerSecond /= 50;
    CostModel costs(cluster);
    Configuration configuration;
    configuration.tensor = 2;
    configuration.pipe = uint32_t(1 + seed % 2);
    configuration.microbatches = 2;
    OpCosts opCosts(model, costs, {2, rowsOf(model, configuration), configuration.precision});
    auto elements = [&](const std::vector<int32_t> &choices) {
      double sum = 0;
      for (uint32_t op = 0; op < choices.size(); ++op)
        sum += opCosts.of(op, choices[op]).parameterElements;
      return sum;
    };
    double fewest = std::numeric_limits<double>::infinity(), bestUs = fewest;
    forEachChoice(model, 2, [&](const std::vector<int32_t> &choices) { fewest = std::min(fewest, elements(choices)); });
    const double most = model.parameterElements - cutShareByHand * (model.parameterElements - fewest);
    StepModel step(model, costs, configuration);
    std::vector<uint32_t> bounds = findSegments(model);
    forEachChoice(model, 2, [&](const std::vector<int32_t> &choices) {
      if (elements(choices) > most * (1 + 1e-9))
        return;
      StepTable table(opCosts, choices, bounds);
      for (uint32_t begin = 1; begin < (configuration.pipe == 1 ? 2 : model.ops.size()); ++begin) {
        std::vector<uint32_t> begins = configuration.pipe == 1 ? std::vector<uint32_t>{0} : std::vector{0u, begin};
        bestUs = std::min(bestUs, evaluate(step, table, begins, std::vector<uint8_t>(begins.size(), 0)).stepUs);
      }
    });
    StageOptions options{1e18, Recompute::none, 0};
    auto fastest = searchParts(model, costs, configuration, options);
    options.leastCutShare = cutShareByHand;
    auto found = searchParts(model, costs, configuration, options);
    ASSERT_TRUE(fastest && found) << "seed " << seed;
    numUncut += elements(choicesByOp(*fastest)) == model.parameterElements;
    EXPECT_LE(elements(choicesByOp(*found)), most * (1 + 1e-9)) << "seed " << seed;
    if (found->order.empty())
      EXPECT_GE(found->stages.stepUs, bestUs * (1 - 1e-9)) << "seed " << seed;
    const double excess = found->stages.stepUs / bestUs - 1;
    worst = std::max(worst, excess);
    mean += excess / double(numCases);
  }
  std::printf("mean %.2f %%, worst %.2f %% above; %lu fastest plans cut nothing\n", 100 * mean, 100 * worst, numUncut);
  EXPECT_GE(numUncut, 20u);
  EXPECT_LE(mean, 0.05);
  EXPECT_LE(worst, 0.3);
}

// With several parts to a stage the model is cut into all of them, and every op has the number of its part.
TEST(PlanSearch, CutsPartsOfStages) {
  std::mt19937_64 random(3);
  Model model = randomModel(random, 20, 8);
  Configuration configuration;
  configuration.pipe = 2;
  configuration.microbatches = 4;
  configuration.chunksPerRank = 3;
  auto found = searchParts(model, CostModel(hostCluster(2)), configuration, {});
  ASSERT_TRUE(found);
  std::vector<uint32_t> parts = stagesByOp(*found);
  EXPECT_EQ(parts.size(), model.ops.size());
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  for (uint32_t part = 0; part < 6; ++part)
    EXPECT_TRUE(std::count(parts.begin(), parts.end(), part)) << part;
}

/// Two towers of products, written in turns, that a last op joins.
static Model towers(uint32_t length) {
  Model model;
  model.numSamples = 64;
  model.values.push_back({noOp, 64.0 * 4096, true, true, false});
  auto addOp = [&](std::vector<uint32_t> reads, double elements) {
    const uint32_t index = uint32_t(model.ops.size());
    ModelOp op;
    op.name = "op" + std::to_string(index);
    op.kind = "test.op";
    op.origin = index;
    op.factorSizes = {64, 64};
    op.isCuttable = {0, 0};
    for (uint32_t value : reads)
      op.operands.push_back({value, {-1, -1}});
    op.results = {{uint32_t(model.values.size()), {-1, -1}}};
    op.forward = op.inputGradient = {1e8, 1e8, 1e6, 1};
    model.ops.push_back(op);
    model.values.push_back({index, elements, true, true, true});
    return uint32_t(model.values.size() - 1);
  };
  uint32_t a = 0, b = 0;
  for (uint32_t i = 0; i < length; ++i) {
    double elements = i + 1 < length ? 64.0 * 4096 : 64;
    a = addOp({a}, elements);
    b = addOp({b}, elements);
  }
  addOp({a, b}, 64);
  return model;
}

// A model with two branches is cut between them although they are written in turns: stages are ranges of an order of
// their own, and the plan says so. The order is topological and the plan's time is that of the reordered model.
TEST(PlanSearch, CutsBetweenBranches) {
  Model model = towers(10);
  ASSERT_TRUE(checkModel(model)) << checkModel(model).message();
  CostModel costs(hostCluster(2));
  SearchOptions options;
  options.numRanks = options.pipe = 2;
  options.microbatches = 4;
  Result<SearchResult> found = searchPlan(model, costs, options);
  ASSERT_TRUE(found) << found.status().message();
  ASSERT_EQ(found->best.order.size(), model.ops.size());
  Model changed = inOrderOf(model, found->best);
  ASSERT_TRUE(checkModel(changed)) << checkModel(changed).message();
  OpCosts opCosts(changed, costs, {1, rowsOf(model, found->best.configuration), plan::DType::f32});
  StepModel step(changed, costs, found->best.configuration);
  StepTable table(opCosts, found->best.choices, findSegments(changed));
  EXPECT_NEAR(evaluate(step, table, found->best.stages.begins, found->best.stages.isRecomputed).stepUs,
              found->best.stages.stepUs, 1e-9 * found->best.stages.stepUs);
  EXPECT_EQ(table.crossingBytes(found->best.stages.begins[1]), 64 * 4 / 4); // one tower's result, of a micro-batch
  // The best that the order of the program allows.
  StepTable given(OpCosts(model, costs, {1, 16, plan::DType::f32}), found->best.choices, findSegments(model));
  StepModel givenStep(model, costs, found->best.configuration);
  double best = 1e300;
  for (uint32_t begin = 1; begin < model.ops.size(); ++begin)
    best = std::min(best, evaluate(givenStep, given, {0, begin}, {0, 0}).stepUs);
  EXPECT_LT(found->best.stages.stepUs, best);
}

// The same input gives the same plan, and a search that is stopped by work says so and keeps an honest bound.
TEST(PlanSearch, IsDeterministicAndAnytime) {
  std::mt19937_64 random(7);
  Model model = randomModel(random, 12, 64);
  CostModel costs(hostCluster(16));
  SearchOptions options;
  options.numRanks = 16;
  Result<SearchResult> first = searchPlan(model, costs, options), second = searchPlan(model, costs, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(describe(first->best), describe(second->best));
  EXPECT_EQ(first->best.choices, second->best.choices);
  EXPECT_EQ(first->best.stages.begins, second->best.stages.begins);
  EXPECT_EQ(first->stopped, "complete");
  options.maxExpanded = 1;
  Result<SearchResult> cut = searchPlan(model, costs, options);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->stopped, "work");
  EXPECT_LE(cut->lowerBoundUs, first->best.stages.stepUs);
  EXPECT_GE(cut->best.stages.stepUs, first->best.stages.stepUs);
}

// A search that is stopped by work still takes the fastest plan of all that it has seen.
TEST(PlanSearch, IsNeverSlowerThanItsAlternatives) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Model model = randomModel(random, 12, 64);
    SearchOptions options;
    options.numRanks = 16;
    options.maxExpanded = 1;
    Result<SearchResult> found = searchPlan(model, CostModel(hostCluster(16)), options);
    ASSERT_TRUE(found) << found.status().message();
    for (const SearchedPlan &other : found->alternatives)
      EXPECT_GE(other.stages.stepUs, found->best.stages.stepUs) << "seed " << seed << ": " << describe(other);
  }
}

/// Ops that cost the same, one after the other.
static Model chain(uint32_t length) {
  Model model;
  model.numSamples = 64;
  model.values.push_back({noOp, 64.0 * 64, true, true, false});
  for (uint32_t i = 0; i < length; ++i) {
    model.values.push_back({i, 64.0 * 64, true, true, true});
    ModelOp op;
    op.name = "op" + std::to_string(i);
    op.kind = "test.op";
    op.factorSizes = {64, 64};
    op.isCuttable = {0, 0};
    op.operands = {{i, {-1, -1}}};
    op.results = {{i + 1, {-1, -1}}};
    op.forward = op.inputGradient = {1e9, 1e9, 1e6, 1};
    model.ops.push_back(op);
  }
  return model;
}

// What the search counts with, a closed form, is what the schedule gives when it is run, whatever its rule.
TEST(PlanSearch, CountsWithWhatTheScheduleGives) {
  Model model = chain(96);
  for (ModelOp &op : model.ops)
    op.weightGradient = op.forward;
  CostModel costs(hostCluster(4));
  for (const ScheduleDescriptor *schedule : allSchedules()) {
    SearchOptions options;
    options.numRanks = options.pipe = 4;
    options.microbatches = 16;
    options.schedules = {schedule};
    Result<SearchResult> found = searchPlan(model, costs, options);
    ASSERT_TRUE(found) << found.status().message();
    double counted = found->best.stages.stepUs, run = predict(model, costs, found->best).stepUs;
    EXPECT_NEAR(run / counted, 1, 0.02) << describe(found->best);
  }
}

// A device three times as fast as the others gets a stage three times as large: stage times are within 10 % of each
// other.
TEST(PlanSearch, BalancesDevicesThatDiffer) {
  Model model = chain(90);
  Cluster cluster = hostCluster(4);
  for (uint32_t fast = 0; fast < 4; ++fast) {
    cluster.deviceSpeeds.assign(4, 1);
    cluster.deviceSpeeds[fast] = 3;
    CostModel costs(cluster);
    SearchOptions options;
    options.numRanks = options.pipe = 4;
    options.microbatches = 16;
    Result<SearchResult> found = searchPlan(model, costs, options);
    ASSERT_TRUE(found) << found.status().message();
    EXPECT_LE(found->lowerBoundUs, found->best.stages.stepUs);
    Prediction predicted = predict(model, costs, found->best);
    double least = 1e300, most = 0;
    for (const StagePrediction &stage : predicted.stages) {
      least = std::min(least, stage.forwardUs + stage.backwardUs);
      most = std::max(most, stage.forwardUs + stage.backwardUs);
    }
    EXPECT_LE(most, 1.1 * least) << "fast device " << fast;
    const StagePrediction &large = predicted.stages[fast];
    EXPECT_EQ(large.lastOp - large.firstOp, 45u) << "fast device " << fast;
  }
}

// What cannot be is refused in words: ranks that the cluster lacks, axes that do not multiply to the ranks, memory.
TEST(PlanSearch, RefusesInWords) {
  std::mt19937_64 random(7);
  Model model = randomModel(random, 8, 8);
  CostModel costs(hostCluster(4));
  SearchOptions options;
  options.numRanks = 8;
  EXPECT_EQ(searchPlan(model, costs, options).status().message(),
            "8 ranks were asked for, but cluster 'cpu' has 4 devices (1 nodes of 4): use fewer ranks or more nodes");
  options.numRanks = 4;
  options.data = 3;
  EXPECT_EQ(
      searchPlan(model, costs, options).status().message(),
      "no mesh of 4 ranks has data=3, tensor=0, pipe=0 (0: any): make the product of the axes the number of ranks");
  options.data = 0;
  options.memoryBytes = 1000;
  Status status = searchPlan(model, costs, options).status();
  EXPECT_EQ(status.kind(), ErrorKind::usage);
  EXPECT_EQ(status.message().find("no plan for 4 ranks fits into --memory 1000: the least that one needs is "), 0u)
      << status.message();
  model.ops[1].operands[0].value = 999;
  EXPECT_EQ(searchPlan(model, costs, {}).status().message(), "model: op 1 names a value that does not exist");
}
