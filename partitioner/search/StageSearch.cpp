// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/StageSearch.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dg::partitioner {

namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();
/// Up to this many starts every possible time of a stage is tried as the bound.
constexpr size_t maxStartsTriedFully = 20;

/// Of a range of ops: no stage is asked for, or several are.
constexpr int32_t anyStage = -1, noStage = -2;

/// A range of ops between two places, with all that does not depend on which stage it is.
struct Range {
  int32_t pinnedStage = anyStage;
  double plainUs = 0, recomputedUs = 0, syncUs = 0;
  double fixedBytes = 0, receivedBytes = 0, savedBytes = 0, keptBytes = 0;
};

class StageProgram {
public:
  StageProgram(const StepModel &step, const StepTable &table, const StageStarts &starts, const StageOptions &options)
      : step(step), table(table), options(options), numStages(step.configuration().pipe) {
    places = {0};
    for (uint32_t start : starts.positions)
      if (start > 0 && start < table.numOps())
        places.push_back(start);
    places.push_back(table.numOps());
    numPlaces = places.size();
    ranges.resize(numPlaces * numPlaces);
    for (size_t i = 0; i + 1 < numPlaces; ++i)
      for (size_t j = i + 1; j < numPlaces; ++j)
        ranges[i * numPlaces + j] = measure(places[i], places[j]);
    findPins(starts);
    for (uint32_t place : places)
      sends.push_back(step.sendUs(table, place));
    for (uint32_t s = 0; s < numStages; ++s)
      slots.push_back(step.slotsOf(s));
  }

  std::optional<StagePlan> run() {
    if (numPlaces < numStages + 1)
      return std::nullopt;
    std::optional<StagePlan> best;
    auto consider = [&](double boundUs) {
      std::optional<StagePlan> plan = planFor(boundUs, impossible);
      // The largest sync is not part of the sum: press it down while that helps.
      for (int round = 0; plan && round < 4; ++round) {
        if (!best || plan->stepUs < best->stepUs)
          best = plan;
        double syncUs = largestSync(*plan);
        plan = syncUs > 0 ? planFor(boundUs, syncUs * (1 - 1e-9)) : std::nullopt;
      }
    };
    std::vector<double> bounds = numPlaces <= maxStartsTriedFully ? allTimes() : fewTimes();
    for (double boundUs : bounds) {
      if (best && step.stepUs(boundUs, boundUs, 0, 0) > best->stepUs)
        break; // the slowest stage alone takes longer
      consider(boundUs);
    }
    return best;
  }

  std::optional<StageBound> bound() {
    if (numPlaces < numStages + 1)
      return std::nullopt;
    std::optional<Solution> whole = solve(impossible, impossible);
    if (!whole)
      return std::nullopt;
    StageBound bound{whole->sumUs, 0};
    if (numPlaces <= maxStartsTriedFully) {
      for (double boundUs : allTimes())
        if (solve(boundUs, impossible)) {
          bound.largestUs = boundUs;
          break;
        }
    } else {
      bound.largestUs = leastLargestUs().first;
    }
    return bound;
  }

  /// The least largest stage, by the same program over bytes.
  std::optional<double> leastBytes() const {
    std::vector<double> best(numPlaces, impossible);
    best[0] = 0;
    for (uint32_t s = 0; s < numStages; ++s) {
      std::vector<double> next(numPlaces, impossible);
      for (size_t i = s; i + 1 < numPlaces; ++i)
        for (size_t j = i + 1; j < numPlaces && best[i] < impossible; ++j) {
          const Range &range = ranges[i * numPlaces + j];
          if (range.pinnedStage == anyStage || range.pinnedStage == int32_t(s))
            next[j] = std::min(next[j], std::max(best[i], leastBytes(range, slots[s])));
        }
      best = std::move(next);
    }
    return best.back() < impossible ? std::optional(best.back()) : std::nullopt;
  }

private:
  struct Solution {
    std::vector<uint32_t> begins;
    std::vector<uint8_t> isRecomputed;
    double sumUs = 0; ///< without sends
  };

  void findPins(const StageStarts &starts) {
    if (starts.pins.empty())
      return;
    for (size_t i = 0; i + 1 < numPlaces; ++i) {
      auto pin = std::lower_bound(starts.pins.begin(), starts.pins.end(), std::pair{places[i], INT32_MIN});
      int32_t stage = anyStage;
      for (size_t j = i + 1; j < numPlaces; ++j) {
        for (; pin != starts.pins.end() && pin->first < places[j]; ++pin)
          stage = stage == anyStage || stage == pin->second ? pin->second : noStage;
        ranges[i * numPlaces + j].pinnedStage = stage;
      }
    }
  }

  Range measure(uint32_t begin, uint32_t end) const {
    StageSums sums = table.sums(begin, end);
    Range range;
    range.plainUs = sums.stepUs(false);
    range.recomputedUs = sums.stepUs(true);
    range.syncUs = step.syncUs(sums.parameterElements);
    range.fixedBytes = sums.parameterElements * step.bytesPerParameter();
    range.receivedBytes = table.crossingBytes(begin);
    range.savedBytes = sums.savedBytes;
    range.keptBytes = sums.keptBytes;
    return range;
  }

  /// Recomputation takes longer, so a stage does it only where it must.
  std::optional<bool> recomputes(const Range &range, double slotCount) const {
    const double bytes = range.fixedBytes + slotCount * range.receivedBytes;
    if (options.recompute != Recompute::full && bytes + slotCount * range.savedBytes <= options.memoryBytes)
      return false;
    if (options.recompute != Recompute::none &&
        bytes + recomputationBytes(range.keptBytes, slotCount, table.largestSegmentBytes()) <= options.memoryBytes)
      return true;
    return std::nullopt;
  }

  double leastBytes(const Range &range, double slotCount) const {
    const double bytes = range.fixedBytes + slotCount * range.receivedBytes;
    double saved = slotCount * range.savedBytes;
    double again = recomputationBytes(range.keptBytes, slotCount, table.largestSegmentBytes());
    if (options.recompute == Recompute::none)
      return bytes + saved;
    return bytes + (options.recompute == Recompute::full ? again : std::min(saved, again));
  }

  std::optional<StagePlan> planFor(double boundUs, double syncBoundUs) const {
    std::optional<Solution> solution = solve(boundUs, syncBoundUs);
    if (!solution)
      return std::nullopt;
    return evaluate(step, table, std::move(solution->begins), std::move(solution->isRecomputed));
  }

  /// The least sum of times and sends with every stage within the bounds.
  std::optional<Solution> solve(double boundUs, double syncBoundUs) const {
    const double limitUs = boundUs * (1 + 1e-12);
    std::vector<std::vector<double>> best(numStages + 1, std::vector<double>(numPlaces, impossible));
    std::vector<std::vector<uint32_t>> from(numStages + 1, std::vector<uint32_t>(numPlaces, 0));
    best[0][0] = 0;
    for (uint32_t s = 0; s < numStages; ++s)
      for (size_t i = s; i + 1 < numPlaces; ++i) {
        if (best[s][i] == impossible)
          continue;
        size_t last = s + 1 == numStages ? numPlaces - 1 : numPlaces - (numStages - s);
        for (size_t j = s + 1 == numStages ? last : i + 1; j <= last; ++j) {
          const Range &range = ranges[i * numPlaces + j];
          if (range.plainUs / step.speedOf(s) > limitUs)
            break;
          if (range.pinnedStage != anyStage && range.pinnedStage != int32_t(s))
            continue;
          std::optional<bool> recomputed = recomputes(range, slots[s]);
          if (!recomputed || range.syncUs > syncBoundUs)
            continue;
          double us = (*recomputed ? range.recomputedUs : range.plainUs) / step.speedOf(s);
          double total = best[s][i] + us + (i > 0 ? sends[i] : 0);
          if (us <= limitUs && total < best[s + 1][j]) {
            best[s + 1][j] = total;
            from[s + 1][j] = uint32_t(i);
          }
        }
      }
    if (best[numStages][numPlaces - 1] == impossible)
      return std::nullopt;
    Solution solution{std::vector<uint32_t>(numStages), std::vector<uint8_t>(numStages), 0};
    size_t j = numPlaces - 1;
    for (uint32_t s = numStages; s-- > 0;) {
      size_t i = from[s + 1][j];
      const Range &range = ranges[i * numPlaces + j];
      solution.begins[s] = places[i];
      solution.isRecomputed[s] = *recomputes(range, slots[s]);
      solution.sumUs += (solution.isRecomputed[s] ? range.recomputedUs : range.plainUs) / step.speedOf(s);
      j = i;
    }
    return solution;
  }

  double largestSync(const StagePlan &plan) const {
    double largest = 0;
    for (size_t s = 0; s < plan.begins.size(); ++s) {
      uint32_t end = s + 1 < plan.begins.size() ? plan.begins[s + 1] : table.numOps();
      largest = std::max(largest, step.syncUs(table.sums(plan.begins[s], end).parameterElements));
    }
    return largest;
  }

  std::vector<double> allTimes() const {
    std::vector<double> times;
    std::set<double> speeds;
    for (uint32_t s = 0; s < numStages; ++s)
      speeds.insert(step.speedOf(s));
    for (size_t i = 0; i + 1 < numPlaces; ++i)
      for (size_t j = i + 1; j < numPlaces; ++j) {
        const Range &range = ranges[i * numPlaces + j];
        for (double speed : speeds) {
          if (options.recompute != Recompute::full)
            times.push_back(range.plainUs / speed);
          if (options.recompute != Recompute::none)
            times.push_back(range.recomputedUs / speed);
        }
      }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
  }

  /// A bound that has no solution (or is trivially low) and one close above it that has. Requires that there is one.
  std::pair<double, double> leastLargestUs() const {
    double high = ranges[numPlaces - 1].recomputedUs * numStages / step.totalSpeed(); // doubled below until it fits
    double low = ranges[numPlaces - 1].plainUs / step.totalSpeed();
    while (!solve(high, impossible))
      high *= 2;
    for (int round = 0; round < 20 && high > low * 1.0005; ++round) {
      double middle = std::sqrt(low * high);
      (solve(middle, impossible) ? high : low) = middle;
    }
    return {low, high};
  }

  /// The least bound that has a solution, and a few above it.
  std::vector<double> fewTimes() const {
    if (!solve(impossible, impossible))
      return {};
    double least = leastLargestUs().second;
    return {least, least * 1.03, least * 1.1};
  }

  const StepModel &step;
  const StepTable &table;
  StageOptions options;
  uint32_t numStages;
  std::vector<uint32_t> places;
  size_t numPlaces = 0;
  std::vector<Range> ranges; ///< [from * numPlaces + to]
  std::vector<double> sends, slots;
};

} // namespace

Recompute allowedRecompute(const Model &model, const Configuration &how, Recompute wanted) {
  if (!model.isTraining || (how.schedule->splitsBackward && wanted == Recompute::automatic))
    return Recompute::none;
  return wanted;
}

StageStarts stageStarts(const Model &model, const StepTable &table, const std::vector<uint32_t> &bounds,
                        uint32_t numStages) {
  const uint32_t n = table.numOps();
  StageStarts starts;
  for (uint32_t op = 0; op < n; ++op)
    if (model.ops[op].pinnedStage != notPinned)
      starts.pins.push_back({op, model.ops[op].pinnedStage});
  std::vector<uint32_t> places = findStagePlaces(model), &kept = starts.positions;
  if (n > maxStageStarts && bounds.size() > 2 * size_t(numStages))
    std::set_intersection(places.begin(), places.end(), bounds.begin(), bounds.end(), std::back_inserter(kept));
  if (kept.size() + 1 < numStages)
    kept = places;
  if (kept.size() > maxStageStarts) {
    // Evenly by work: the first start behind each equal share.
    std::vector<uint32_t> all = std::move(kept);
    kept.clear();
    const double whole = table.sums(0, n).stepUs(false);
    for (uint32_t start : all)
      if (table.sums(0, start).stepUs(false) >= whole * double(kept.size() + 1) / (maxStageStarts + 1))
        kept.push_back(start);
  }
  for (auto [op, stage] : starts.pins)
    if (auto before = std::upper_bound(places.begin(), places.end(), op); before != places.begin())
      kept.push_back(*std::prev(before));
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return starts;
}

std::optional<StagePlan> searchStages(const StepModel &step, const StepTable &table, const StageStarts &starts,
                                      const StageOptions &options) {
  return StageProgram(step, table, starts, options).run();
}

std::optional<double> leastStageBytes(const StepModel &step, const StepTable &table, const StageStarts &starts,
                                      Recompute recompute) {
  return StageProgram(step, table, starts, {impossible, recompute}).leastBytes();
}

std::optional<StageBound> boundStages(const StepModel &step, const StepTable &least, const StageStarts &starts,
                                      const StageOptions &options) {
  return StageProgram(step, least, starts, options).bound();
}

} // namespace dg::partitioner
