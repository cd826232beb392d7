// SPDX-License-Identifier: Apache-2.0
// Runs the programs of a split module as many simulated ranks in one process, and so gives the communication ops their
// meaning. Ranks of a stage move in lockstep, op by op; stages meet in a mailbox.
#pragma once

#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ParameterStore.h"
#include "tests/unit/reference/TensorBlocks.h"

#include "mlir/IR/BuiltinOps.h"

namespace dg::ir {

/// The sizes of the mesh axes inside a stage; the stages themselves are in the module.
struct SimulatedMesh {
  int64_t data = 1, tensor = 1;
};

/// What the chunks of a program returned in one step.
class StepResults {
public:
  /// A named result of one stage and micro-batch (0 for chunks that run once a step), on each rank of the stage: data ·
  /// tensor of them, tensor fastest.
  struct Entry {
    std::string name;
    int64_t stage, microbatch;
    std::vector<HostTensor> ranks;
  };
  std::vector<Entry> entries;

  /// The sum over micro-batches of a scalar on the first rank: the mean over the step's samples for a loss or an
  /// accuracy, whose samples are weighed. Nothing where no chunk returned the name.
  std::optional<double> total(llvm::StringRef name) const;

  /// The rows of all samples, in order, of a result that is cut by samples over "data"; nothing where no chunk returned
  /// it.
  std::optional<HostTensor> rows(llvm::StringRef name, int64_t numSamples, int64_t numMicrobatches,
                                 SimulatedMesh mesh) const;
};

class SimulatedRanks {
public:
  /// The module stays the caller's and must outlive the ranks. `parameters` are the global tensors that the ranks start
  /// from.
  SimulatedRanks(mlir::ModuleOp module, SimulatedMesh mesh, ParameterStore parameters,
                 Precision precision = Precision::f64);

  /// One step of a program ("train", "eval", "infer") on tensors of all its samples, by input name. Micro-batch m gets
  /// a contiguous block of the samples, and in it each data rank likewise; what is left of a local buffer repeats a
  /// sample. "sample_weight" is made here: 1 / samples for a real row, 0 for a repeated one. Parameters change at the
  /// end of the step. Emits an error on the guilty op: a deadlock, a tensor that does not fit, ranks that should agree
  /// and do not.
  mlir::FailureOr<StepResults> run(llvm::StringRef program, const TensorMap &inputs, int64_t numMicrobatches,
                                   const RunScalars &scalars = {});

  /// The global tensors, joined from the ranks' shards. Emits an error where two ranks hold different copies of the
  /// same elements.
  mlir::FailureOr<TensorMap> gatherParameters();

private:
  friend class SimulatedStep;

  struct ShardedParameter {
    ParameterOp op; ///< one of the ops that read it: sharding and types
    int64_t stage;
    std::vector<HostTensor> ranks;
  };

  mlir::FailureOr<ShardedParameter *> parameterAt(ParameterOp op, int64_t stage);
  int64_t numRanks() const { return mesh.data * mesh.tensor; }
  /// This rank's coordinate along an axis, and the axis's size; emits an error on the op for any other axis.
  mlir::FailureOr<std::pair<int64_t, int64_t>> coordinate(mlir::Operation *op, llvm::StringRef axis,
                                                          int64_t rank) const;

  mlir::ModuleOp module;
  SimulatedMesh mesh;
  ParameterStore initial;
  Precision precision;
  std::map<std::string, ShardedParameter> parameters;
};

} // namespace dg::ir
