// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/PlanSearch.h"

#include "partitioner/search/Configurations.h"
#include "partitioner/search/Conflict.h"
#include "partitioner/search/LeastMemory.h"
#include "partitioner/search/StageOrder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

namespace dg::partitioner {

namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();
/// Models up to this size get their shardings refined op by op against the step itself.
constexpr size_t maxOpsRefined = 48;
constexpr int maxRefinements = 6;
/// Up to this size also two ops at a time, where memory binds.
constexpr size_t maxOpsPaired = 12;
/// Configurations times ops that are searched, and configurations that are searched whatever the ops.
constexpr size_t maxExpandedOps = 800'000, leastExpanded = 12;
/// Prices of a whole parameter that are tried, each twice the one before.
constexpr int maxPriceRungs = 40;
/// Prices that are tried between the last too low one and the first high enough.
constexpr int numPriceSteps = 6;
/// Where memory binds, so many of the plans found at different prices are refined.
constexpr size_t maxPlansRefined = 5;

/// What the bound of a configuration needs to know of its shardings.
struct DivisionFacts {
  double leastUs = 0;         ///< of one micro-batch through all ops
  double leastParameters = 0; ///< elements of one tensor rank, if every op is cut as small as it can be
};

/// Whether so much of the parameters is cut as was asked for.
class CutShare {
public:
  CutShare(const OpCosts &costs, double leastShare) : costs(costs) {
    if (leastShare <= 0 || costs.division().tensor == 1)
      return;
    const Model &model = costs.model();
    for (uint32_t op = 0; op < model.ops.size(); ++op) {
      if (model.ops[op].parameters.empty())
        continue;
      double most = 0;
      for (int32_t choice : choicesOf(model.ops[op], costs.division().tensor))
        most = std::max(most, cutElements(op, choice));
      least += leastShare * most;
    }
    least *= 1 - 1e-9;
  }
  bool isAsked() const { return least > 0; }
  bool isReached(const std::vector<int32_t> &choices) const {
    double cut = 0;
    for (uint32_t op = 0; op < choices.size() && cut < least; ++op)
      cut += costs.model().ops[op].parameters.empty() ? 0 : cutElements(op, choices[op]);
    return cut >= least;
  }

private:
  /// That a rank does not hold.
  double cutElements(uint32_t op, int32_t choice) const {
    return costs.of(op, uncut).parameterElements - costs.of(op, choice).parameterElements;
  }
  const OpCosts &costs;
  double least = 0;
};

/// The model with its ops in another order, in which stages are cut.
struct Reordered {
  Reordered(const Model &model, std::vector<uint32_t> order)
      : order(std::move(order)), model(reorder(model, this->order)), shardings(this->model) {}
  std::vector<uint32_t> order;
  Model model;
  ShardingSearch shardings;
};

class Searcher {
public:
  Searcher(const Model &model, const CostModel &costs, const SearchOptions &options)
      : model(model), costs(costs), options(options), shardings(model),
        memoryBytes(options.memoryBytes > 0 ? options.memoryBytes : double(costs.cluster().device.memoryBytes)) {}

  Result<SearchResult> run() {
    auto start = std::chrono::steady_clock::now();
    auto secondsSince = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    for (const Configuration &configuration : listConfigurations(model, options, shardings.kinds().size()))
      add(configuration);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
      return std::tie(a.boundUs, a.order) < std::tie(b.boundUs, b.order);
    });
    SearchResult result;
    result.stopped = "complete";
    result.numConfigurations = uint32_t(candidates.size());
    std::map<std::string, SearchedPlan> bestOfMesh;
    double bestUs = impossible, lowerBoundUs = impossible;
    auto take = [&](SearchedPlan &found) {
      if (found.stages.stepUs < bestUs) {
        bestUs = found.stages.stepUs;
        result.best = found;
      }
      found.choices.clear();
      std::string mesh = found.configuration.meshText();
      auto known = bestOfMesh.find(mesh);
      if (known == bestOfMesh.end() || found.stages.stepUs < known->second.stages.stepUs)
        bestOfMesh[mesh] = std::move(found);
    };
    // Large models get fewer, so that the work is bounded.
    const uint32_t maxExpanded = std::min<uint32_t>(
        options.maxExpanded, std::max<uint32_t>(leastExpanded, uint32_t(maxExpandedOps / model.ops.size())));
    for (const Candidate &candidate : candidates) {
      if (candidate.boundUs >= bestUs) {
        lowerBoundUs = std::min(lowerBoundUs, bestUs);
        break;
      }
      bool isLate = options.seconds > 0 && bestUs < impossible && secondsSince() > options.seconds;
      if (isLate || result.numExpanded >= maxExpanded) {
        result.stopped = isLate ? "time" : "work";
        lowerBoundUs = std::min(lowerBoundUs, candidate.boundUs);
        break;
      }
      ++result.numExpanded;
      std::optional<double> boundUs = tightBound(candidate);
      if (!boundUs)
        continue; // proved not to fit
      lowerBoundUs = std::min(lowerBoundUs, *boundUs);
      if (*boundUs >= bestUs)
        continue;
      if (std::optional<SearchedPlan> found = expand(candidate))
        take(*found);
    }
    if (bestUs == impossible)
      return Status::error(ErrorKind::usage, "there is no plan");
    // A few meshes that were not searched, so that a reader sees by how much they lose; or win, where the work was up.
    for (const Candidate &candidate : candidates) {
      bool isLate = options.seconds > 0 && secondsSince() > options.seconds;
      if (isLate || bestOfMesh.size() > options.numAlternatives)
        break;
      std::string mesh = candidate.configuration.meshText();
      if (bestOfMesh.count(mesh))
        continue;
      if (std::optional<SearchedPlan> found = expand(candidate))
        take(*found);
    }
    result.lowerBoundUs = std::min(lowerBoundUs, bestUs);
    result.gap = bestUs / result.lowerBoundUs - 1;
    for (auto &[mesh, plan] : bestOfMesh)
      if (mesh != result.best.configuration.meshText())
        result.alternatives.push_back(std::move(plan));
    std::sort(result.alternatives.begin(), result.alternatives.end(), [](const SearchedPlan &a, const SearchedPlan &b) {
      return std::make_pair(a.stages.stepUs, describe(a)) < std::make_pair(b.stages.stepUs, describe(b));
    });
    if (result.alternatives.size() > options.numAlternatives)
      result.alternatives.resize(options.numAlternatives);
    result.seconds = secondsSince();
    return result;
  }

private:
  struct Candidate {
    Configuration configuration;
    double boundUs = 0;
    size_t order = 0;                     ///< of equal bounds the first that was made
    const Reordered *reordered = nullptr; ///< null: the model as it was given
  };

  std::optional<SearchedPlan> expand(const Candidate &candidate) const {
    const Reordered *other = candidate.reordered;
    std::optional<SearchedPlan> found =
        searchConfiguration(other ? other->model : model, costs, other ? other->shardings : shardings,
                            candidate.configuration, {memoryBytes, options.recompute, options.leastCutShare});
    if (found && other)
      found->order = other->order;
    return found;
  }

  void add(const Configuration &configuration) {
    const DivisionFacts &facts = factsOf(configuration);
    StepModel step(model, costs, configuration);
    const double p = configuration.pipe;
    // Together the stages need at least this much.
    double leastBytes = facts.leastParameters * step.bytesPerParameter();
    if (leastBytes > p * memoryBytes)
      return;
    double sends = configuration.pipe > 1 ? (p - 1) * leastSendUs() : 0;
    double boundUs = step.stepUs(facts.leastUs / step.largestSpeed(), facts.leastUs / step.totalSpeed(), sends,
                                 step.syncUs(facts.leastParameters / p));
    candidates.push_back({configuration, boundUs * (1 - 1e-9), candidates.size()});
    // Where a rank has several parts of the model, these are not cut by the search.
    bool isCutHere = configuration.chunksPerRank == 1;
    if (const Reordered *other = isCutHere ? reorderedFor(configuration.pipe) : nullptr)
      candidates.push_back({configuration, boundUs * (1 - 1e-9), candidates.size(), other});
  }

  const Reordered *reorderedFor(uint32_t pipe) {
    auto [found, isNew] = reordered.try_emplace(pipe, nullptr);
    if (isNew)
      if (auto order = findStageOrder(model, costs, pipe))
        found->second = std::make_unique<Reordered>(model, std::move(*order));
    return found->second.get();
  }

  /// The bound with memory: stages that must recompute, and stages that cannot be equal. Nothing where nothing fits.
  std::optional<double> tightBound(const Candidate &candidate) const {
    const Configuration &how = candidate.configuration;
    const Model &own = candidate.reordered ? candidate.reordered->model : model;
    const ShardingSearch &ownShardings = candidate.reordered ? candidate.reordered->shardings : shardings;
    OpCosts opCosts(own, costs, {how.tensor, rowsOf(model, how), how.precision});
    StepModel step(own, costs, how);
    // Cuts inside of segments are only looked at where there are few ops; then the times are those of single ops.
    std::vector<std::pair<double, double>> segmentUs;
    StepTable byOp = StepTable::least(opCosts, ownShardings.bounds(), {});
    StageStarts starts = stageStarts(own, byOp, ownShardings.bounds(), how.pipe);
    bool isBySegment = how.pipe == 1 || std::includes(ownShardings.bounds().begin(), ownShardings.bounds().end(),
                                                      starts.positions.begin(), starts.positions.end());
    if (isBySegment) {
      std::vector<double> plain = ownShardings.boundSegments(opCosts, {1, 0, 0}),
                          recomputed = ownShardings.boundSegments(opCosts, {2, 0, 0});
      for (size_t s = 0; s < plain.size(); ++s)
        segmentUs.push_back({plain[s], recomputed[s]});
    }
    StepTable least = isBySegment ? StepTable::least(opCosts, ownShardings.bounds(), segmentUs) : std::move(byOp);
    std::optional<StageBound> bound = boundStages(step, least, starts, {memoryBytes, recomputeOf(how)});
    if (!bound)
      return std::nullopt;
    const DivisionFacts &known = facts.at({how.tensor, rowsOf(model, how)});
    double sends = how.pipe > 1 ? (how.pipe - 1) * leastSendUs() : 0;
    double us = step.stepUs(std::max(bound->sumUs, known.leastUs / step.largestSpeed()),
                            std::max(bound->largestUs, known.leastUs / step.totalSpeed()), sends,
                            step.syncUs(known.leastParameters / how.pipe));
    return std::max(us * (1 - 1e-9), candidate.boundUs);
  }

  Recompute recomputeOf(const Configuration &how) const { return allowedRecompute(model, how, options.recompute); }

  double leastSendUs() const {
    return std::min(costs.cluster().intraNode.latencyUs, costs.cluster().interNode.latencyUs) *
           (model.isTraining ? 2 : 1);
  }

  const DivisionFacts &factsOf(const Configuration &configuration) {
    const double rows = rowsOf(model, configuration);
    auto [found, isNew] = facts.try_emplace({configuration.tensor, rows});
    if (!isNew)
      return found->second;
    OpCosts opCosts(model, costs, {configuration.tensor, rows, configuration.precision});
    ShardingPrices prices;
    prices.forward = options.recompute == Recompute::full ? 2 : 1;
    found->second.leastUs = shardings.solve(opCosts, prices).lowerBound;
    if (auto known = leastParameters.find(configuration.tensor); known != leastParameters.end()) {
      found->second.leastParameters = known->second;
      return found->second;
    }
    double elements = 0;
    for (uint32_t op = 0; op < model.ops.size(); ++op)
      if (!model.ops[op].parameters.empty()) {
        double least = impossible;
        for (int32_t choice : choicesOf(model.ops[op], configuration.tensor))
          least = std::min(least, opCosts.of(op, choice).parameterElements);
        elements += least;
      }
    leastParameters[configuration.tensor] = found->second.leastParameters = elements;
    return found->second;
  }

  const Model &model;
  const CostModel &costs;
  const SearchOptions &options;
  ShardingSearch shardings;
  double memoryBytes;
  std::vector<Candidate> candidates;
  std::map<uint32_t, std::unique_ptr<Reordered>> reordered;   ///< by stages; null: the model's own order is as good
  std::map<std::pair<uint32_t, double>, DivisionFacts> facts; ///< by tensor ranks and rows
  std::map<uint32_t, double> leastParameters;
};

/// Tries other choices against the step itself, until nothing gets better: of every op, and with few ops of every two.
class Refinement {
public:
  Refinement(SearchedPlan &best, const OpCosts &opCosts, const StepModel &step, const ShardingSearch &shardings,
             const StageOptions &stages, const CutShare &cutShare)
      : best(best), opCosts(opCosts), step(step), shardings(shardings), stages(stages), cutShare(cutShare) {}

  void run(bool isPairwise) {
    const uint32_t n = uint32_t(model().ops.size());
    bool isBetter = true;
    for (int round = 0; round < maxRefinements && isBetter; ++round) {
      isBetter = false;
      for (uint32_t op = 0; op < n; ++op)
        isBetter |= tryChoices(op, best.choices);
      for (uint32_t a = 0; a < n && isPairwise && !isBetter; ++a)
        for (int32_t choice : choicesOf(model().ops[a], tensor())) {
          if (choice == best.choices[a])
            continue;
          std::vector<int32_t> changed = best.choices;
          changed[a] = choice;
          for (uint32_t b = a + 1; b < n; ++b)
            isBetter |= tryChoices(b, changed);
        }
    }
  }

private:
  const Model &model() const { return opCosts.model(); }
  uint32_t tensor() const { return opCosts.division().tensor; }

  /// Every choice of one op, the others as in `from`.
  bool tryChoices(uint32_t op, std::vector<int32_t> from) {
    const int32_t own = from[op];
    bool isBetter = false;
    for (int32_t choice : choicesOf(model().ops[op], tensor())) {
      if (choice == own)
        continue;
      from[op] = choice;
      if (!cutShare.isReached(from))
        continue;
      StepTable table(opCosts, from, shardings.bounds());
      StageStarts starts = stageStarts(model(), table, shardings.bounds(), step.configuration().pipe);
      auto found = searchStages(step, table, starts, stages);
      if (found && found->stepUs < best.stages.stepUs * (1 - 1e-12)) {
        best.stages = *found;
        best.choices = from;
        isBetter = true;
      }
    }
    return isBetter;
  }

  SearchedPlan &best;
  const OpCosts &opCosts;
  const StepModel &step;
  const ShardingSearch &shardings;
  const StageOptions &stages;
  const CutShare &cutShare;
};

} // namespace

std::string describe(const SearchedPlan &plan) {
  const Configuration &how = plan.configuration;
  std::string text =
      fmt::format("{}, {} micro-batch{}", how.meshText(), how.microbatches, how.microbatches == 1 ? "" : "es");
  if (how.pipe > 1)
    text += fmt::format(
        ", {}{}", how.schedule->name,
        how.schedule->takesChunks() && how.chunksPerRank > 1 ? fmt::format(" with {} chunks", how.chunksPerRank) : "");
  if (how.zero > 0)
    text += fmt::format(", zero {}", how.zero);
  auto recomputed = std::count(plan.stages.isRecomputed.begin(), plan.stages.isRecomputed.end(), 1);
  if (recomputed > 0)
    text += fmt::format(", recomputation in {} of {} stages", recomputed, how.pipe);
  return text;
}

std::vector<uint32_t> stagesByOp(const SearchedPlan &plan) {
  std::vector<uint32_t> stages(plan.choices.size());
  for (uint32_t position = 0, stage = 0; position < stages.size(); ++position) {
    while (stage + 1 < plan.stages.begins.size() && position >= plan.stages.begins[stage + 1])
      ++stage;
    stages[plan.order.empty() ? position : plan.order[position]] = stage;
  }
  return stages;
}

std::vector<int32_t> choicesByOp(const SearchedPlan &plan) {
  std::vector<int32_t> choices(plan.choices.size());
  for (uint32_t position = 0; position < choices.size(); ++position)
    choices[plan.order.empty() ? position : plan.order[position]] = plan.choices[position];
  return choices;
}

std::optional<SearchedPlan> searchParts(const Model &model, const CostModel &costs, const Configuration &configuration,
                                        const StageOptions &stages) {
  ShardingSearch shardings(model);
  if (configuration.chunksPerRank > 1) {
    Cluster cluster = costs.cluster();
    cluster.deviceSpeeds.clear(); // a stage has early and late parts
    Configuration parts = configuration;
    parts.pipe *= parts.chunksPerRank;
    parts.schedule = &defaultSchedule();
    parts.chunksPerRank = 1;
    StageOptions own = stages;
    own.memoryBytes = std::numeric_limits<double>::infinity();
    return searchConfiguration(model, CostModel(cluster), shardings, parts, own);
  }
  std::optional<SearchedPlan> best = searchConfiguration(model, costs, shardings, configuration, stages);
  auto order = configuration.pipe > 1 ? findStageOrder(model, costs, configuration.pipe) : std::nullopt;
  if (!order)
    return best;
  Reordered other(model, std::move(*order));
  auto found = searchConfiguration(other.model, costs, other.shardings, configuration, stages);
  if (!found || (best && best->stages.stepUs <= found->stages.stepUs))
    return best;
  found->order = other.order;
  return found;
}

Model inOrderOf(const Model &model, const SearchedPlan &plan) {
  return plan.order.empty() ? model : reorder(model, plan.order);
}

std::optional<SearchedPlan> searchConfiguration(const Model &model, const CostModel &costs,
                                                const ShardingSearch &shardings, const Configuration &configuration,
                                                const StageOptions &stages) {
  OpCosts opCosts(model, costs, {configuration.tensor, rowsOf(model, configuration), configuration.precision});
  StepModel step(model, costs, configuration);
  StageOptions own = stages;
  own.recompute = allowedRecompute(model, configuration, stages.recompute);
  std::vector<SearchedPlan> plans;
  const CutShare cutShare(opCosts, stages.leastCutShare);
  double leastUs = 0;
  auto considerPrices = [&](const ShardingPrices &prices) {
    Shardings found = shardings.solve(opCosts, prices);
    if (prices.usPerParameterElement == 0)
      leastUs = found.lowerBound;
    StepTable table(opCosts, found.choices, shardings.bounds());
    auto plan = searchStages(step, table, stageStarts(model, table, shardings.bounds(), configuration.pipe), own);
    bool isKnown = std::any_of(plans.begin(), plans.end(),
                               [&](const SearchedPlan &known) { return known.choices == found.choices; });
    if (plan && !isKnown)
      plans.push_back({configuration, *plan, std::move(found.choices)});
  };
  auto consider = [&](double forward, double price) {
    considerPrices({forward, price * step.bytesPerParameter(), price * step.slotsOf(0)});
  };
  consider(own.recompute == Recompute::full ? 2 : 1, 0);
  bool isPressed =
      plans.empty() || std::any_of(plans.front().stages.isRecomputed.begin(), plans.front().stages.isRecomputed.end(),
                                   [](uint8_t recomputed) { return recomputed; });
  if (isPressed && configuration.tensor > 1 && (own.recompute != Recompute::full || plans.empty())) {
    // Memory binds: time is traded for bytes at rising prices.
    double scale = leastUs / (stages.memoryBytes * configuration.pipe);
    for (double price : {0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0})
      consider(own.recompute == Recompute::full ? 2 : 1, price * scale);
    if (own.recompute == Recompute::automatic)
      consider(2, 0);
  }
  if (plans.empty() && configuration.tensor > 1) { // what needs least, whatever the time
    auto least = findLeastMemory(model, costs, shardings, configuration, own.recompute);
    if (least && least->peakBytes <= stages.memoryBytes) {
      StepTable table(opCosts, least->choices, shardings.bounds());
      if (auto plan = searchStages(step, table, stageStarts(model, table, shardings.bounds(), configuration.pipe), own))
        plans.push_back({configuration, *plan, std::move(least->choices)});
    }
  }
  // Whole parameters get dearer until enough of them are cut; then the least such price is looked for.
  auto isCutEnough = [&](const SearchedPlan &plan) { return cutShare.isReached(plan.choices); };
  auto isAnyCutEnough = [&] { return std::any_of(plans.begin(), plans.end(), isCutEnough); };
  if (cutShare.isAsked() && !isAnyCutEnough()) {
    const double forward = own.recompute == Recompute::full ? 2 : 1;
    double price = leastUs / std::max(1.0, model.parameterElements) / 64;
    for (int rung = 0; rung < maxPriceRungs && !isAnyCutEnough(); ++rung)
      considerPrices({forward, price *= 2, 0});
    for (int step = 1; step < numPriceSteps; ++step)
      considerPrices({forward, price * (1 + double(step) / numPriceSteps) / 2, 0});
  }
  if (isAnyCutEnough())
    plans.erase(std::remove_if(plans.begin(), plans.end(), std::not_fn(isCutEnough)), plans.end());
  auto isFaster = [](const SearchedPlan &a, const SearchedPlan &b) {
    return std::tie(a.stages.stepUs, a.choices) < std::tie(b.stages.stepUs, b.choices);
  };
  std::sort(plans.begin(), plans.end(), isFaster);
  if (plans.empty())
    return std::nullopt;
  if (model.ops.size() <= maxOpsRefined && configuration.tensor > 1) {
    plans.resize(std::min(plans.size(), maxPlansRefined));
    for (SearchedPlan &plan : plans)
      Refinement(plan, opCosts, step, shardings, own, cutShare)
          .run((isPressed || cutShare.isAsked()) && model.ops.size() <= maxOpsPaired);
  }
  return *std::min_element(plans.begin(), plans.end(), isFaster);
}

Result<SearchResult> searchPlan(const Model &model, const CostModel &costs, const SearchOptions &options) {
  DG_RETURN_IF_ERROR(checkModel(model));
  const uint32_t n = options.numRanks;
  const Cluster &cluster = costs.cluster();
  if (n == 0 || n > cluster.numDevices())
    return Status::error(ErrorKind::usage,
                         "{} ranks were asked for, but cluster '{}' has {} devices ({} nodes of {}): use fewer ranks "
                         "or more nodes",
                         n, cluster.name, cluster.numDevices(), cluster.numNodes, cluster.devicesPerNode);
  if (!hasMesh(options))
    return Status::error(ErrorKind::usage,
                         "no mesh of {} ranks has data={}, tensor={}, pipe={} (0: any): make the product of the axes "
                         "the number of ranks",
                         n, options.data, options.tensor, options.pipe);
  DG_RETURN_IF_ERROR(checkSchedule(model, options));
  Result<SearchResult> found = Status::error(ErrorKind::usage, "there is no plan");
  if (std::optional<Model> pinned = applyPins(model, options.pins))
    found = Searcher(*pinned, costs, options).run();
  if (found || found.status().kind() != ErrorKind::usage)
    return found;
  if (std::optional<Conflict> conflict = findConflict(model, costs, options))
    return describeConflict(*conflict, options);
  return Status::error(ErrorKind::usage,
                       "none of the meshes of {} ranks suits the model ({} samples, {} ops): use fewer ranks or a "
                       "larger batch",
                       n, model.numSamples, model.ops.size());
}

} // namespace dg::partitioner
