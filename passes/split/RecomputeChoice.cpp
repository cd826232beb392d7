// SPDX-License-Identifier: Apache-2.0
#include "passes/split/RecomputeChoice.h"

#include <algorithm>
#include <limits>
#include <set>

namespace dg::passes {

namespace {

constexpr uint32_t none = UINT32_MAX;

/// Who makes each value, and who needs it behind the forward pass.
class Chooser {
public:
  explicit Chooser(const Step &step) : step(step), maker(step.bytes.size(), none), isNeededLater(step.bytes.size()) {
    for (uint32_t op = 0; op < step.ops.size(); ++op) {
      for (uint32_t value : step.ops[op].writes)
        maker[value] = op;
      if (!step.ops[op].isForward)
        for (uint32_t value : step.ops[op].reads)
          isNeededLater[value] = true;
    }
  }

  double peak(const std::vector<bool> &repeated) const;
  std::vector<bool> choose(double savedBytes, uint32_t maxTrials) const;

private:
  bool isRepeated(const std::vector<bool> &repeated, uint32_t value) const {
    return maker[value] != none && repeated[maker[value]];
  }
  /// What has to run again for `op` to, beyond what does so anyway: values that nothing keeps for the backward pass are
  /// made again too. Empty when one of them cannot.
  std::vector<uint32_t> withWhatItNeeds(uint32_t op, const std::vector<bool> &repeated) const;
  double costForByte(const std::vector<uint32_t> &ops) const;

  const Step &step;
  std::vector<uint32_t> maker;
  std::vector<bool> isNeededLater;
};

double Chooser::peak(const std::vector<bool> &repeated) const {
  // The ops as they run: the forward pass, then the rest with repetitions before their first reader.
  struct Run {
    uint32_t op;
    bool isAgain;
  };
  std::vector<Run> runs;
  std::vector<bool> hasRunAgain(step.ops.size());
  std::vector<uint32_t> pending;
  for (uint32_t op = 0; op < step.ops.size(); ++op) {
    if (!step.ops[op].isForward) {
      std::vector<uint32_t> again;
      pending.assign(1, op);
      while (!pending.empty()) {
        uint32_t reader = pending.back();
        pending.pop_back();
        for (uint32_t value : step.ops[reader].reads)
          if (isRepeated(repeated, value) && !hasRunAgain[maker[value]]) {
            hasRunAgain[maker[value]] = true;
            again.push_back(maker[value]);
            pending.push_back(maker[value]);
          }
      }
      std::sort(again.begin(), again.end());
      for (uint32_t repetition : again)
        runs.push_back({repetition, true});
    }
    runs.push_back({op, false});
  }
  // A value has a first and a second life: as the forward pass made it, and as it was made again.
  size_t numValues = step.bytes.size();
  std::vector<uint32_t> lastUse(2 * numValues, none);
  auto lifeReadBy = [&](const Run &run, uint32_t value) {
    bool isLater = run.isAgain || !step.ops[run.op].isForward;
    return isLater && isRepeated(repeated, value) ? numValues + value : size_t(value);
  };
  for (uint32_t at = 0; at < runs.size(); ++at) {
    for (uint32_t value : step.ops[runs[at].op].writes)
      lastUse[(runs[at].isAgain ? numValues : 0) + value] = at;
    for (uint32_t value : step.ops[runs[at].op].reads)
      lastUse[lifeReadBy(runs[at], value)] = at;
  }
  std::vector<double> freed(runs.size());
  for (size_t life = 0; life < 2 * numValues; ++life)
    if (lastUse[life] != none && maker[life % numValues] != none)
      freed[lastUse[life]] += step.bytes[life % numValues];
  double live = 0, most = 0;
  for (uint32_t at = 0; at < runs.size(); ++at) {
    for (uint32_t value : step.ops[runs[at].op].writes)
      live += step.bytes[value];
    most = std::max(most, live);
    live -= freed[at];
  }
  return most;
}

std::vector<uint32_t> Chooser::withWhatItNeeds(uint32_t op, const std::vector<bool> &repeated) const {
  constexpr size_t mostOps = 64;
  std::vector<uint32_t> needed{op};
  for (size_t next = 0; next < needed.size(); ++next)
    for (uint32_t value : step.ops[needed[next]].reads) {
      uint32_t from = maker[value];
      if (from == none || isNeededLater[value] || repeated[from] ||
          std::find(needed.begin(), needed.end(), from) != needed.end())
        continue;
      if (!step.ops[from].canRepeat || needed.size() == mostOps)
        return {};
      needed.push_back(from);
    }
  return needed;
}

/// Values that the backward pass reads are what is won.
double Chooser::costForByte(const std::vector<uint32_t> &ops) const {
  double cost = 0, bytes = 0;
  for (uint32_t op : ops) {
    cost += step.ops[op].cost;
    for (uint32_t value : step.ops[op].writes)
      bytes += isNeededLater[value] ? step.bytes[value] : 0;
  }
  return bytes > 0 ? cost / bytes : std::numeric_limits<double>::infinity();
}

std::vector<bool> Chooser::choose(double savedBytes, uint32_t maxTrials) const {
  std::vector<bool> repeated(step.ops.size());
  double now = peak(repeated), goal = now - savedBytes;
  std::vector<std::vector<uint32_t>> taken;
  std::set<std::vector<uint32_t>> refused;
  while (now > goal && maxTrials > 0) {
    std::vector<uint32_t> best;
    double bestCost = std::numeric_limits<double>::infinity();
    for (uint32_t op = 0; op < step.ops.size(); ++op) {
      bool isKept = std::any_of(step.ops[op].writes.begin(), step.ops[op].writes.end(),
                                [&](uint32_t value) { return isNeededLater[value]; });
      if (!isKept || !step.ops[op].canRepeat || repeated[op])
        continue;
      // Alone, what it needs is kept instead.
      std::vector<uint32_t> together = withWhatItNeeds(op, repeated), alone{op};
      for (std::vector<uint32_t> *ops : {&together, &alone})
        if (double cost = costForByte(*ops); !ops->empty() && !refused.contains(*ops) && cost < bestCost) {
          best = *ops;
          bestCost = cost;
        }
    }
    if (best.empty())
      break;
    for (uint32_t op : best)
      repeated[op] = true;
    --maxTrials;
    // Where the peak stays, it may stand at two places: the next choice can then lower it.
    if (double after = peak(repeated); after <= now) {
      if (after < now)
        refused.clear(); // what did not help before may now
      now = after;
      taken.push_back(std::move(best));
      continue;
    }
    for (uint32_t op : best)
      repeated[op] = false;
    refused.insert(std::move(best));
  }
  // The dearest were taken last.
  for (auto group = taken.rbegin(); group != taken.rend() && maxTrials > 0; ++group, --maxTrials) {
    for (uint32_t op : *group)
      repeated[op] = false;
    if (double without = peak(repeated); without > std::max(now, goal))
      for (uint32_t op : *group)
        repeated[op] = true;
  }
  return repeated;
}

} // namespace

double peakBytes(const Step &step, const std::vector<bool> &repeated) { return Chooser(step).peak(repeated); }

std::vector<bool> chooseRepeated(const Step &step, double savedBytes, uint32_t maxTrials) {
  return Chooser(step).choose(savedBytes, maxTrials);
}

} // namespace dg::passes
