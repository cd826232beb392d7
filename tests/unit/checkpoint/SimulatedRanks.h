// SPDX-License-Identifier: Apache-2.0
// Ranks as threads with plain memory, for plans that were made by hand: enough of a run to write and read checkpoints.
#pragma once

#include "runtime/checkpoint/CheckpointWriter.h"
#include "tests/unit/plan/HandTasks.h"

#include <barrier>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace dg::test {

/// A value as dgc would describe it.
inline plan::Value keptValue(const plan::Mesh &mesh, const std::string &name, uint32_t stage,
                             std::vector<int64_t> shape, std::vector<std::string> sharding,
                             plan::ValueKind kind = plan::ValueKind::parameter) {
  plan::Value value;
  value.name = name;
  value.stage = stage;
  value.kind = kind;
  value.globalShape = value.shape = shape;
  value.sharding = plan::testing::axesNamed(sharding);
  value.bytes = sizeof(float);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (int64_t parts = mesh.sizeOf(sharding[dim]); parts > 0)
      value.shape[dim] = (shape[dim] + parts - 1) / parts;
    value.bytes *= uint64_t(value.shape[dim]);
  }
  return value;
}

/// The memory of every rank of a plan: one float vector per value.
class SimulatedRanks {
public:
  explicit SimulatedRanks(const plan::Plan &plan) : plan(plan), memory(size_t(plan.mesh.numRanks())) {
    for (auto &ofRank : memory)
      for (const plan::Value &value : plan.values)
        ofRank.emplace_back(value.bytes / sizeof(float), -1.0f);
  }

  /// The values of one rank.
  class Values final : public ValueAccess {
  public:
    Values(SimulatedRanks &ranks, int64_t rank) : ranks(ranks), rank(rank) {}
    Status inspect(plan::ValueId id, uint32_t, const Use &use) const override {
      return has(id) ? use(std::as_bytes(std::span(ranks.valueOf(rank, id)))) : missing(id);
    }
    Status fill(plan::ValueId id, uint32_t, const Write &write) override {
      if (!has(id))
        return missing(id);
      write(std::as_writable_bytes(std::span(ranks.valueOf(rank, id))));
      return Status::ok();
    }

  private:
    bool has(plan::ValueId id) const {
      return int64_t(ranks.plan.values[id].stage) == ranks.plan.mesh.coordinatesOf(rank).pipe;
    }
    Status missing(plan::ValueId id) const {
      return Status::error(ErrorKind::usage, "rank {} has no value {}", rank, id);
    }
    SimulatedRanks &ranks;
    const int64_t rank;
  };

  std::vector<float> &valueOf(int64_t rank, plan::ValueId id) { return memory[size_t(rank)][id]; }

  /// Every rank writes, in its own thread; returns what each got.
  std::vector<Result<std::string>> write(const std::string &directory, const checkpoint::TrainingState &state) {
    int64_t numRanks = plan.mesh.numRanks();
    std::barrier meet(numRanks);
    std::vector<Status> said(size_t(numRanks), Status::ok());
    Result<std::string> nothing = std::string();
    std::vector<Result<std::string>> results(size_t(numRanks), nothing);
    auto run = [&](int64_t rank) {
      auto agree = [&, rank](const Status &mine) {
        said[size_t(rank)] = mine;
        meet.arrive_and_wait();
        Status worst = Status::ok();
        for (int64_t other = numRanks; other-- > 0;)
          if (!said[size_t(other)])
            worst = said[size_t(other)];
        if (rank == 0 && afterAgreement)
          afterAgreement();
        meet.arrive_and_wait();
        return worst;
      };
      Values values(*this, rank);
      auto writer = checkpoint::CheckpointWriter::create(plan, rank, directory, values, agree, false);
      results[size_t(rank)] = writer ? writer->write(state) : Result<std::string>(writer.status());
    };
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      threads.emplace_back(run, rank);
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }

  /// Runs each time that all have agreed, before anyone goes on.
  std::function<void()> afterAgreement;

private:
  const plan::Plan &plan;
  std::vector<std::vector<std::vector<float>>> memory;
};

} // namespace dg::test
