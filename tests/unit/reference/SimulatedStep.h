// SPDX-License-Identifier: Apache-2.0
// One step of a split program on simulated ranks. A run of a chunk for one micro-batch goes on until it needs what is
// not there yet; whoever can go on does, so any schedule without deadlock is covered and a deadlock is found.
#pragma once

#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/reference/SimulatedRanks.h"

namespace dg::ir {

/// Everything that lives for one step of one program.
class SimulatedStep {
public:
  SimulatedStep(SimulatedRanks &ranks, const TensorMap &inputs, int64_t numMicrobatches, const RunScalars &scalars)
      : ranks(ranks), inputs(inputs), numMicrobatches(numMicrobatches), scalars(scalars) {}

  mlir::FailureOr<StepResults> run(llvm::StringRef program);

private:
  using PerRank = std::vector<HostTensor>;

  /// A chunk on its way through one micro-batch.
  struct Run {
    GraphOp chunk;
    int64_t stage;
    Phase phase;
    int64_t microbatch;
    bool isStarted = false, isDone = false;
    mlir::Operation *next = nullptr; ///< what it executes next
    ReceiveOp awaited{};             ///< whose message `next` waits for
    llvm::DenseMap<mlir::Value, PerRank> values{};
  };

  bool isOncePerStep(Phase phase) const { return phase == Phase::begin || phase == Phase::update; }
  mlir::LogicalResult countSamples(llvm::ArrayRef<GraphOp> chunks);
  bool mayStart(const Run &run) const;
  /// Binds the chunk's inputs; false where a result of another chunk is not there yet.
  mlir::FailureOr<bool> start(Run &run);
  mlir::FailureOr<PerRank> modelInput(Run &run, llvm::StringRef name, mlir::RankedTensorType type);
  /// Executes ops until the end or one that reads a message that is not there yet, as a rank does: a receive is started
  /// at its place and complete at its first reader. True where something happened.
  mlir::FailureOr<bool> advance(Run &run);
  mlir::LogicalResult execute(Run &run, mlir::Operation &op);
  mlir::LogicalResult executeCollective(Run &run, mlir::Operation &op, llvm::StringRef axis,
                                        std::optional<int64_t> dim);
  mlir::LogicalResult bindResult(Run &run, mlir::Value result, PerRank tensors);
  void finish(Run &run);

  SimulatedRanks &ranks;
  const TensorMap &inputs;
  int64_t numMicrobatches;
  const RunScalars &scalars;
  int64_t numSamples = 0;

  std::vector<Run> runs;
  StepResults results;
  std::map<std::tuple<int64_t, int64_t, std::string>, PerRank> named; ///< (stage, micro-batch, name)
  std::map<std::pair<int64_t, int64_t>, PerRank> mailbox;             ///< (channel, micro-batch)
  std::map<std::pair<int64_t, std::string>, PerRank> accumulators;    ///< (stage, name)
  std::map<std::string, std::pair<UpdateOp, PerRank>> updates;
};

} // namespace dg::ir
