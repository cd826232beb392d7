// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/Conflict.h"

#include "partitioner/search/Configurations.h"
#include "partitioner/search/LeastMemory.h"

#include <algorithm>
#include <numeric>

namespace dg::partitioner {

namespace {

constexpr size_t largestSetTried = 3;
/// Sets that are tried times ops of the model; and so many sets whatever the ops.
constexpr size_t maxTriedOps = 4'000'000, leastTried = 40;
/// Configurations that are tried for a set times ops of the model.
constexpr size_t maxConfigurationOps = 400'000, leastConfigurations = 40;

class ConflictSearch {
public:
  ConflictSearch(const Model &model, const CostModel &costs, const SearchOptions &options)
      : model(model), costs(costs), options(options),
        memoryBytes(options.memoryBytes > 0 ? options.memoryBytes : double(costs.cluster().device.memoryBytes)),
        numMeshes(options.data || options.tensor || options.pipe ? 1 : 0),
        numMicrobatches(options.microbatches ? 1 : 0),
        numConstraints(options.pins.size() + options.forbiddenAxes.size() + numMeshes + numMicrobatches + 1) {}

  std::optional<Conflict> run() {
    if (!leastBytes({}))
      return std::nullopt;
    const size_t maxTried = std::max(leastTried, maxTriedOps / model.ops.size());
    size_t numTried = 0;
    for (size_t size = 1; size <= std::min(largestSetTried, numConstraints); ++size) {
      std::vector<size_t> set(size);
      for (size_t i = 0; i < size; ++i)
        set[i] = i;
      do {
        if (++numTried > maxTried)
          return leaveOut();
        if (!isFeasible(set))
          return describe(set);
      } while (advance(set));
    }
    return numConstraints > largestSetTried ? leaveOut() : std::nullopt;
  }

private:
  /// The next set of the same size; false behind the last.
  bool advance(std::vector<size_t> &set) const {
    for (size_t i = set.size(); i-- > 0;)
      if (set[i] + (set.size() - i) < numConstraints) {
        ++set[i];
        for (size_t j = i + 1; j < set.size(); ++j)
          set[j] = set[j - 1] + 1;
        return true;
      }
    return false;
  }

  std::optional<Conflict> leaveOut() {
    std::vector<size_t> set(numConstraints);
    for (size_t i = 0; i < numConstraints; ++i)
      set[i] = i;
    if (isFeasible(set))
      return std::nullopt;
    for (size_t i = 0; i < set.size();) {
      std::vector<size_t> fewer = set;
      fewer.erase(fewer.begin() + ptrdiff_t(i));
      if (isFeasible(fewer))
        ++i;
      else
        set = std::move(fewer);
    }
    return describe(set);
  }

  bool hasMemory(const std::vector<size_t> &set) const { return !set.empty() && set.back() == numConstraints - 1; }

  bool isFeasible(const std::vector<size_t> &set) {
    std::optional<double> bytes = leastBytes(set);
    return bytes && (!hasMemory(set) || *bytes <= memoryBytes);
  }

  SearchOptions optionsOf(const std::vector<size_t> &set) const {
    SearchOptions own = options;
    own.pins.clear();
    own.forbiddenAxes.clear();
    own.data = own.tensor = own.pipe = own.microbatches = 0;
    for (size_t i : set) {
      if (i < options.pins.size()) {
        own.pins.push_back(options.pins[i]);
        continue;
      }
      i -= options.pins.size();
      if (i < options.forbiddenAxes.size()) {
        own.forbiddenAxes.push_back(options.forbiddenAxes[i]);
        continue;
      }
      i -= options.forbiddenAxes.size();
      if (i < numMeshes) {
        own.data = options.data;
        own.tensor = options.tensor;
        own.pipe = options.pipe;
      } else if (i - numMeshes < numMicrobatches) {
        own.microbatches = options.microbatches;
      }
    }
    return own;
  }

  std::string nameOf(size_t i) const {
    if (i < options.pins.size())
      return fmt::format("--pin '{}'", options.pins[i].text);
    i -= options.pins.size();
    if (i < options.forbiddenAxes.size())
      return fmt::format("--forbid {}", options.forbiddenAxes[i]);
    i -= options.forbiddenAxes.size();
    if (i < numMeshes)
      return fmt::format("--mesh data={},tensor={},pipe={}", options.data, options.tensor, options.pipe);
    if (i - numMeshes < numMicrobatches)
      return fmt::format("--microbatches {}", options.microbatches);
    return options.memoryBytes > 0
               ? fmt::format("--memory {:.0f}", memoryBytes)
               : fmt::format("the {:.0f} bytes of a device '{}'", memoryBytes, costs.cluster().device.name);
  }

  /// What a plan needs at least that meets the constraints of the set but for memory; nothing where there is none. Any
  /// plan will do where memory is not asked about.
  std::optional<double> leastBytes(const std::vector<size_t> &set) {
    SearchOptions own = optionsOf(set);
    std::optional<Model> pinned = applyPins(model, own.pins);
    if (!pinned)
      return std::nullopt;
    ShardingSearch shardings(*pinned);
    std::vector<Configuration> all = listConfigurations(*pinned, own, shardings.kinds().size());
    // Small micro-batches need least.
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(rowsOf(model, all[a]), a) < std::pair(rowsOf(model, all[b]), b);
    });
    if (size_t most = std::max(leastConfigurations, maxConfigurationOps / model.ops.size()); order.size() > most)
      order.resize(most);
    std::optional<double> least;
    for (size_t i : order) {
      const Configuration &configuration = all[i];
      Recompute recompute = allowedRecompute(model, configuration, options.recompute);
      if (auto found = findLeastMemory(*pinned, costs, shardings, configuration, recompute);
          found && (!least || found->peakBytes < *least))
        least = found->peakBytes;
      if (least && (!hasMemory(set) || *least <= memoryBytes))
        break;
    }
    return least;
  }

  Conflict describe(const std::vector<size_t> &set) {
    Conflict conflict;
    for (size_t i : set)
      conflict.constraints.push_back(nameOf(i));
    conflict.memoryBytes = memoryBytes;
    if (hasMemory(set))
      conflict.neededBytes = leastBytes(set);
    return conflict;
  }

  const Model &model;
  const CostModel &costs;
  const SearchOptions &options;
  double memoryBytes;
  size_t numMeshes, numMicrobatches, numConstraints; ///< memory is the last constraint
};

} // namespace

std::optional<Model> applyPins(Model model, const std::vector<Pin> &pins) {
  for (const Pin &pin : pins)
    for (const Pin::Target &target : pin.targets) {
      ModelOp &op = model.ops[target.op];
      for (auto [wish, own] : {std::pair{target.choice, &op.pinnedChoice}, {target.stage, &op.pinnedStage}}) {
        if (wish == notPinned)
          continue;
        if (*own != notPinned && *own != wish)
          return std::nullopt;
        *own = wish;
      }
    }
  return model;
}

std::optional<Conflict> findConflict(const Model &model, const CostModel &costs, const SearchOptions &options) {
  return ConflictSearch(model, costs, options).run();
}

Status describeConflict(const Conflict &conflict, const SearchOptions &options) {
  if (!conflict.neededBytes)
    return Status::error(ErrorKind::usage, "no plan for {} ranks meets {}{}: leave out or change {}", options.numRanks,
                         fmt::join(conflict.constraints, ", "), conflict.constraints.size() > 1 ? " together" : "",
                         conflict.constraints.size() > 1 ? "one of them" : "it");
  std::vector<std::string> others(conflict.constraints.begin(), conflict.constraints.end() - 1);
  return Status::error(ErrorKind::usage,
                       "no plan for {} ranks fits into {}{}: the least that one needs is {:.0f} bytes a rank, {:.0f} "
                       "more ({:.2f} GiB); give more ranks, more --memory{} or a smaller batch",
                       options.numRanks, conflict.constraints.back(),
                       others.empty() ? "" : fmt::format(" with {}", fmt::join(others, ", ")), *conflict.neededBytes,
                       *conflict.neededBytes - conflict.memoryBytes,
                       (*conflict.neededBytes - conflict.memoryBytes) / 0x1p30,
                       others.empty() ? "" : ", fewer constraints");
}

} // namespace dg::partitioner
