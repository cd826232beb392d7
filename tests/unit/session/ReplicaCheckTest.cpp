// SPDX-License-Identifier: Apache-2.0
// Proves whom the comparison of replicas names: the minority where there is one, everyone where there is none, and
// nobody for blocks that differ because a mesh axis cuts the value.
#include "runtime/session/ReplicaCheck.h"

#include <gtest/gtest.h>

#include <array>

using namespace dg;
using namespace dg::session;

namespace {

/// Two parameters and an activation on each of two stages; the second parameter is cut over tensor ranks.
plan::Plan planOf(int64_t data, int64_t tensor) {
  plan::Plan plan;
  plan.mesh.sizes = {2, data, tensor};
  for (uint32_t stage : {0, 1})
    for (auto [name, kind, axis] :
         {std::tuple("bias", plan::ValueKind::parameter, ""), std::tuple("weight", plan::ValueKind::state, "tensor"),
          std::tuple("h", plan::ValueKind::activation, "")}) {
      plan::Value value;
      value.name = name + std::to_string(stage);
      value.stage = stage;
      value.kind = kind;
      value.bytes = 16;
      value.sharding = {enumNamed<plan::Axis>(axis)};
      plan.values.push_back(value);
    }
  return plan;
}

/// Equal replicas; cut values differ from block to block.
std::vector<std::vector<uint64_t>> soundHashes(const plan::Plan &plan) {
  std::vector<std::vector<uint64_t>> hashes;
  for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
    hashes.push_back({1, 100 + uint64_t(plan.mesh.coordinatesOf(rank).tensor)});
  return hashes;
}

TEST(ReplicaCheck, soundReplicasAreQuiet) {
  plan::Plan plan = planOf(3, 2);
  EXPECT_FALSE(findDrift(plan, soundHashes(plan), 5));
}

TEST(ReplicaCheck, minorityIsNamed) {
  plan::Plan plan = planOf(3, 2);
  for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
    for (size_t value : {0, 1}) {
      auto hashes = soundHashes(plan);
      hashes[size_t(rank)][value] ^= 1;
      auto drift = findDrift(plan, hashes, 5);
      ASSERT_TRUE(drift);
      EXPECT_EQ(rank, drift->rank);
      std::string name = (value == 0 ? "bias" : "weight") + std::to_string(plan.mesh.coordinatesOf(rank).pipe);
      EXPECT_EQ(0u,
                drift->message.find(fmt::format("rank {} drifted: '{}' differs from what the {} other replicas hold "
                                                "after step 5",
                                                rank, name, value == 0 ? 5 : 2)))
          << drift->message;
    }
}

TEST(ReplicaCheck, withoutMajorityBothAreNamed) {
  plan::Plan plan = planOf(2, 1);
  auto hashes = soundHashes(plan);
  hashes[3][0] = 7;
  auto drift = findDrift(plan, hashes, 5);
  ASSERT_TRUE(drift);
  EXPECT_EQ(2, drift->rank);
  EXPECT_EQ(0u, drift->message.find("the replicas of 'bias1' on ranks 2, 3 differ, and none is in the majority"))
      << drift->message;
}

/// A rank whose values hold the same bytes, except value 4.
class TwoValues final : public ValueAccess {
public:
  TwoValues(std::span<const std::byte> usual, std::span<const std::byte> fourth) : usual(usual), fourth(fourth) {}
  Status inspect(plan::ValueId id, uint32_t, const Use &use) const override { return use(id == 4 ? fourth : usual); }
  Status fill(plan::ValueId, uint32_t, const Write &) override { return Status::ok(); }

private:
  std::span<const std::byte> usual, fourth;
};

TEST(ReplicaCheck, hashesAreOfTheStagesPersistentBytes) {
  plan::Plan plan = planOf(1, 1);
  std::array<std::byte, 16> zeros{}, ones{};
  ones.fill(std::byte(1));
  auto hashesOf = [&](std::span<const std::byte> second) {
    auto hashes = hashReplicas(plan, {1, 0, 0}, TwoValues(zeros, second));
    EXPECT_TRUE(hashes);
    return hashes ? *hashes : std::vector<uint64_t>(2);
  };
  EXPECT_EQ(2u, hashesOf(zeros).size());
  EXPECT_EQ(hashesOf(zeros)[0], hashesOf(ones)[0]);
  EXPECT_NE(hashesOf(zeros)[1], hashesOf(ones)[1]);
}

} // namespace
