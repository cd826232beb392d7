// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/Configurations.h"

#include <algorithm>
#include <set>

namespace dg::partitioner {

namespace {

/// Calls `visit` with data, tensor and pipe of every mesh of all ranks within the options.
template <typename Visit> void forEachMesh(const SearchOptions &options, Visit visit) {
  const uint32_t n = options.numRanks;
  for (uint32_t tensor = 1; tensor <= n; ++tensor) {
    if (n % tensor != 0 || (options.tensor && tensor != options.tensor))
      continue;
    for (uint32_t pipe = 1; pipe <= n / tensor; ++pipe) {
      const uint32_t data = n / tensor / pipe;
      bool isWanted =
          n / tensor % pipe == 0 && (!options.pipe || pipe == options.pipe) && (!options.data || data == options.data);
      if (isWanted)
        visit(data, tensor, pipe);
    }
  }
}

bool isForbidden(const SearchOptions &options, const char *axis, uint32_t size) {
  return size > 1 &&
         std::find(options.forbiddenAxes.begin(), options.forbiddenAxes.end(), axis) != options.forbiddenAxes.end();
}

/// The least and most chunks of a stage that are tried; one stage alone gains nothing from a choice of them.
std::pair<uint32_t, uint32_t> chunksOf(const ScheduleDescriptor &schedule, const SearchOptions &options,
                                       uint32_t pipe) {
  if (!schedule.takesChunks())
    return {schedule.chunksPerStage, schedule.chunksPerStage};
  if (pipe == 1)
    return {1, 1};
  return options.chunksPerRank ? std::pair(options.chunksPerRank, options.chunksPerRank)
                               : std::pair(schedule.chunksPerStage, schedule.mostChunksSearched);
}

class Listing {
public:
  Listing(const Model &model, const SearchOptions &options, size_t numSegments) : model(model), options(options) {
    std::set<int64_t> working;
    for (const ModelOp &op : model.ops) {
      leastStages = std::max<int64_t>(leastStages, op.pinnedStage == notPinned ? 1 : op.pinnedStage + 1);
      isPinned = isPinned || op.pinnedStage != notPinned;
      if (op.forward.flops + op.inputGradient.flops + op.weightGradient.flops > 0)
        working.insert(op.origin >= 0 ? op.origin : -2 - int64_t(&op - model.ops.data()));
    }
    maxParts = std::min(numSegments, working.size());
  }

  std::vector<Configuration> run() {
    forEachMesh(options, [&](uint32_t data, uint32_t tensor, uint32_t pipe) {
      bool isAllowed = !isForbidden(options, "data", data) && !isForbidden(options, "tensor", tensor) &&
                       !isForbidden(options, "pipe", pipe);
      if (isAllowed && pipe <= model.ops.size() && pipe >= leastStages && int64_t(data) <= model.numSamples &&
          isCuttable(tensor))
        addMesh(data, tensor, pipe);
    });
    return std::move(found);
  }

private:
  /// Every op that is pinned to a factor can be cut so many ways, and some op with a parameter could be if no pin
  /// forbade it: a tensor axis that no model of this shape can use is not listed.
  bool isCuttable(uint32_t tensor) const {
    bool isAny = tensor == 1;
    for (const ModelOp &op : model.ops) {
      if (op.pinnedChoice >= 0 && (tensor == 1 || op.factorSizes[size_t(op.pinnedChoice)] % tensor != 0))
        return false;
      isAny = isAny || op.pinnedChoice >= 0;
      for (size_t factor = 0; factor < op.factorSizes.size() && !op.parameters.empty(); ++factor)
        isAny = isAny || (op.isCuttable[factor] && op.factorSizes[factor] % tensor == 0);
    }
    return isAny;
  }

  void addMesh(uint32_t data, uint32_t tensor, uint32_t pipe) {
    const int64_t perRank = (model.numSamples + data - 1) / data;
    double lastRows = -1;
    for (int64_t m = 1; m <= perRank && m <= options.maxMicrobatches; ++m) {
      if (options.microbatches && m != options.microbatches)
        continue;
      Configuration configuration;
      configuration.data = data;
      configuration.tensor = tensor;
      configuration.pipe = pipe;
      configuration.microbatches = uint32_t(m);
      configuration.precision = options.precision;
      // Of several numbers with equally many rows the smallest wastes least.
      double rows = rowsOf(model, configuration);
      if (rows == lastRows || (!options.microbatches && !isRoundNumber(rows, perRank)))
        continue;
      lastRows = rows;
      addSchedules(configuration);
    }
  }

  /// With many samples only those numbers of rows are tried that divide them, and small ones.
  static bool isRoundNumber(double rows, int64_t perRank) {
    return perRank <= 64 || rows <= 8 || perRank % int64_t(rows) == 0;
  }

  void addSchedules(Configuration configuration) {
    for (const ScheduleDescriptor *schedule : options.schedules) {
      if (configuration.pipe == 1 && schedule != options.schedules.front())
        continue; // they differ only in a pipeline
      configuration.schedule = schedule;
      auto [least, most] = chunksOf(*schedule, options, configuration.pipe);
      for (uint32_t chunks = least; chunks <= most; ++chunks) {
        configuration.chunksPerRank = chunks;
        if (model.isTraining && !schedule->check(configuration.shape()))
          continue;
        // Where a stage has several parts of the model, it is not one range of ops that could be pinned.
        const bool isPinnedApart = isPinned && configuration.pipe > 1;
        if (chunks > 1 && (isPinnedApart || uint64_t(chunks) * configuration.pipe > maxParts))
          continue;
        for (uint32_t zero : options.zero) {
          if (zero > 0 && configuration.data == 1 && options.zero.size() > 1)
            continue;
          configuration.zero = zero;
          found.push_back(configuration);
        }
      }
    }
  }

  const Model &model;
  const SearchOptions &options;
  size_t maxParts = 0; ///< that the model can be cut into: segments and author's ops that compute something
  int64_t leastStages = 1;
  bool isPinned = false; ///< some op, to a stage
  std::vector<Configuration> found;
};

} // namespace

std::vector<Configuration> listConfigurations(const Model &model, const SearchOptions &options, size_t numSegments) {
  return Listing(model, options, numSegments).run();
}

bool hasMesh(const SearchOptions &options) {
  bool isFound = false;
  forEachMesh(options, [&](uint32_t, uint32_t, uint32_t) { isFound = true; });
  return isFound;
}

Status checkSchedule(const Model &model, const SearchOptions &options) {
  if (!model.isTraining || options.schedules.size() != 1 || options.microbatches == 0)
    return Status::ok();
  const uint32_t pipe = std::max(1u, options.pipe); // what one stage cannot have, more cannot have either
  const ScheduleDescriptor &schedule = *options.schedules.front();
  return schedule.check({pipe, options.microbatches, chunksOf(schedule, options, pipe).first});
}

} // namespace dg::partitioner
