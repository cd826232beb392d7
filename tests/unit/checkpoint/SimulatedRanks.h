// SPDX-License-Identifier: Apache-2.0
// Ranks as threads with plain memory, for plans that were made by hand: enough of a run to write and read checkpoints.
#pragma once

#include "runtime/checkpoint/CheckpointSave.h"
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
    std::vector<std::string> words(static_cast<size_t>(numRanks));
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
      auto exchange = [&, rank](const std::string &mine) -> Result<std::vector<std::string>> {
        words[size_t(rank)] = mine;
        meet.arrive_and_wait();
        auto all = words;
        if (rank == 0 && afterAgreement)
          afterAgreement();
        meet.arrive_and_wait();
        return all;
      };
      Values values(*this, rank);
      auto writer = checkpoint::CheckpointWriter::create(plan, rank, directory, agree, false);
      results[size_t(rank)] =
          writer ? saveAtOnce(std::move(*writer), rank, values, exchange, state) : Result<std::string>(writer.status());
    };
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      threads.emplace_back(run, rank);
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }

  /// Bytes of each rank for the copy of a save behind steps.
  std::vector<uint64_t> copyBytes(const std::string &directory) {
    std::vector<uint64_t> bytes;
    for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank) {
      auto agreed = [](const Status &) { return Status::ok(); };
      auto writer = checkpoint::CheckpointWriter::create(plan, rank, directory, agreed, false);
      Values values(*this, rank);
      if (writer)
        bytes.push_back(checkpoint::CheckpointSave(std::move(*writer), rank, plan, values, {}).copyBytes());
    }
    return bytes;
  }

  /// Runs each time that all have agreed, before anyone goes on.
  std::function<void()> afterAgreement;
  /// Makes saves be behind steps, and runs in each of them.
  std::function<void(int64_t rank, int64_t step)> meanwhile;

private:
  Result<std::string> saveAtOnce(checkpoint::CheckpointWriter writer, int64_t rank, const Values &values,
                                 const checkpoint::Exchange &exchange, const checkpoint::TrainingState &state) const {
    checkpoint::CheckpointSave save(std::move(writer), rank, plan, values, exchange);
    using Pace = checkpoint::CheckpointSave::Pace;
    DG_RETURN_IF_ERROR(save.begin(state, meanwhile ? Pace::behindSteps : Pace::atOnce));
    Result<std::optional<checkpoint::CheckpointSave::End>> end = {std::nullopt};
    for (int64_t step = state.step; end && !*end; ++step) {
      if (meanwhile)
        meanwhile(rank, step);
      end = save.advance(step, !meanwhile);
    }
    if (!end)
      return end.status();
    return (*end)->failure ? Result<std::string>((*end)->path) : Result<std::string>((*end)->failure);
  }
  const plan::Plan &plan;
  std::vector<std::vector<std::vector<float>>> memory;
};

} // namespace dg::test
