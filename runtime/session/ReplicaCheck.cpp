// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/ReplicaCheck.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <xxhash.h>

namespace dg::session {

/// Parameters and states of a stage.
static std::vector<plan::ValueId> persistentValues(const plan::Plan &plan, int64_t stage) {
  std::vector<plan::ValueId> ids;
  for (plan::ValueId id = 0; id < plan.values.size(); ++id) {
    const plan::Value &value = plan.values[id];
    bool isPersistent = value.kind == plan::ValueKind::parameter || value.kind == plan::ValueKind::state;
    if (isPersistent && value.stage == uint32_t(stage))
      ids.push_back(id);
  }
  return ids;
}

Result<std::vector<uint64_t>> hashReplicas(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values) {
  std::vector<uint64_t> hashes;
  for (plan::ValueId id : persistentValues(plan, at.pipe))
    DG_RETURN_IF_ERROR(values.inspect(id, 0, [&](std::span<const std::byte> bytes) {
      hashes.push_back(XXH3_64bits(bytes.data(), bytes.size()));
      return Status::ok();
    }));
  return hashes;
}

/// Which block of the value the rank holds: its coordinates on the axes that cut the value.
static std::vector<int64_t> blockOf(const plan::Value &value, plan::Coordinates at) {
  std::vector<int64_t> block;
  for (std::optional<plan::Axis> axis : value.sharding)
    block.push_back(axis ? at[*axis] : 0);
  return block;
}

/// The ranks of a block whose hash is not that of most of them; all of them where there is no majority.
static std::vector<int64_t> minorityOf(const std::vector<std::pair<int64_t, uint64_t>> &replicas) {
  std::map<uint64_t, size_t> counts;
  for (auto [rank, hash] : replicas)
    ++counts[hash];
  auto most = std::max_element(counts.begin(), counts.end(), [](auto &a, auto &b) { return a.second < b.second; });
  bool isMajority = 2 * most->second > replicas.size();
  std::vector<int64_t> ranks;
  for (auto [rank, hash] : replicas)
    if (!isMajority || hash != most->first)
      ranks.push_back(rank);
  return ranks;
}

std::optional<Drift> findDrift(const plan::Plan &plan, const std::vector<std::vector<uint64_t>> &hashes, int64_t step) {
  for (int64_t stage = 0; stage < plan.numStages(); ++stage) {
    std::vector<plan::ValueId> ids = persistentValues(plan, stage);
    for (size_t i = 0; i < ids.size(); ++i) {
      const plan::Value &value = plan.values[ids[i]];
      std::map<std::vector<int64_t>, std::vector<std::pair<int64_t, uint64_t>>> blocks;
      for (int64_t rank = 0; rank < int64_t(hashes.size()); ++rank)
        if (plan::Coordinates at = plan.mesh.coordinatesOf(rank); at.pipe == stage && i < hashes[size_t(rank)].size())
          blocks[blockOf(value, at)].push_back({rank, hashes[size_t(rank)][i]});
      for (const auto &[block, replicas] : blocks) {
        std::vector<int64_t> drifted = minorityOf(replicas);
        if (drifted.empty())
          continue;
        std::string text = drifted.size() < replicas.size()
                               ? fmt::format("rank{} {} drifted: '{}' differs from what the {} other replicas hold",
                                             drifted.size() > 1 ? "s" : "", fmt::join(drifted, ", "), value.name,
                                             replicas.size() - drifted.size())
                               : fmt::format("the replicas of '{}' on ranks {} differ, and none is in the majority",
                                             value.name, fmt::join(drifted, ", "));
        return Drift{
            drifted.front(),
            fmt::format("{} after step {}; look for failing memory or a kernel that is not deterministic, and go "
                        "on from an earlier checkpoint with --resume",
                        text, step)};
      }
    }
  }
  return std::nullopt;
}

} // namespace dg::session
