// SPDX-License-Identifier: Apache-2.0
// A save of all ranks together, behind the steps that go on meanwhile: the values are copied between two steps, a
// thread of each rank writes the copy, and ranks meet between later steps to see how far everyone is.
//
//   step 50 │ copy │ step 51 … │ reserved? │ step 52 … │ all written? │ step 54 … │ all proved? │ step 57 …
//   threads │      └ rank 0: reserve ┘     └ write, fsync ┘           └ rank 0: read back, name ┘
#pragma once

#include "runtime/checkpoint/CheckpointWriter.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>

namespace dg::checkpoint {

/// Meets all ranks: everyone's bytes, by rank.
using Exchange = std::function<Result<std::vector<std::string>>(const std::string &mine)>;

/// A rank's values as they were at one moment.
class ValueCopy final : public ValueAccess {
public:
  /// Takes its memory, the same for every copy.
  ValueCopy(const plan::Plan &plan, std::vector<plan::ValueId> ids);
  uint64_t bytes() const { return size; }
  Status take(const ValueAccess &from);
  Status inspect(plan::ValueId value, uint32_t slot, const Use &use) const override;
  Status fill(plan::ValueId value, uint32_t slot, const Write &write) override;

private:
  std::vector<plan::ValueId> ids;
  std::vector<std::span<std::byte>> parts; ///< by id
  uint64_t size = 0;
  std::unique_ptr<std::byte[]> memory; ///< touched at the first copy
};

/// One at a time. Every rank calls the same functions between the same two steps, from the thread that runs them: only
/// files are touched by another, so that a disk which hangs holds no rank.
class CheckpointSave {
public:
  /// `values` outlives it. `patience`: so long a disk may move nothing.
  CheckpointSave(CheckpointWriter writer, int64_t rank, const plan::Plan &plan, const ValueAccess &values,
                 Exchange exchange, std::chrono::milliseconds patience = std::chrono::minutes(2));
  /// What is in flight is given up, without waiting for a disk that does not answer.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave &) = delete;

  const CheckpointWriter &writer() const { return *files; }
  /// Memory of this rank for the copy of a save behind steps.
  uint64_t copyBytes() const { return copy->bytes(); }
  bool isInFlight() const { return inFlight; }

  enum class Pace { behindSteps, atOnce };
  /// Begins to save the values of now, when none is in flight. `atOnce`: nothing is copied, the values stay as they are
  /// until advance says that the save has ended.
  Status begin(const TrainingState &state, Pace pace);
  /// Once more, after one that failed: the same values.
  Status retry();

  /// How a save ended.
  struct End {
    TrainingState state;
    std::string path;
    double seconds = 0;            ///< since it began
    Status failure = Status::ok(); ///< of a disk, on one rank at least; another save may succeed
  };
  /// One turn after `step`, which asks the others only when it is time; nothing: it goes on. `wait`: does not return
  /// before the end. Fails where no other save would succeed: a rank is gone, the values are not finite, another run
  /// has the folder, a disk hangs.
  Result<std::optional<End>> advance(int64_t step, bool wait);
  /// Whether the last failure of any function here began on another rank.
  bool hasPeerFailed() const { return isPeers; }

private:
  /// What ranks tell each other of a phase.
  struct Verdict {
    bool isPending = false, isFatal = false;
    Status failure = Status::ok();
    std::vector<std::string> hashes;
    int64_t steps = 1; ///< until they meet again
  };
  Result<Verdict> meet(int64_t step);
  Status hear(std::chrono::steady_clock::duration time);
  /// Runs the work of a phase in a thread of its own, whose word hear() takes.
  void launch(std::function<std::string()> work);
  void reserve();
  void write();
  void finish(std::vector<std::string> hashes);

  std::shared_ptr<const CheckpointWriter> files; ///< the thread's too, which may outlive this
  std::shared_ptr<ValueCopy> copy;
  std::shared_ptr<std::atomic<bool>> isCancelled = std::make_shared<std::atomic<bool>>(false);
  const ValueAccess &values;
  const int64_t rank;
  Exchange exchange;
  TrainingState state;
  Pace pace = Pace::atOnce;
  bool inFlight = false, isPeers = false;
  enum class Phase { reserving, writing, finishing } phase = Phase::reserving;
  Status begun = Status::ok();
  std::future<std::string> work;
  std::optional<std::string> word; ///< of this phase, once it is over here
  int64_t nextMeeting = 0, lastStep = 0;
  std::chrono::steady_clock::time_point started, lastMeeting, lastMove;
  const std::chrono::milliseconds patience;
  uint64_t lastMoved = 0; ///< of the writer, at lastMove
};

} // namespace dg::checkpoint
