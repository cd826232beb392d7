// SPDX-License-Identifier: Apache-2.0
// A scalar as a sum over samples. A loss may have several terms: losses, means over samples, and what no sample has a
// part in (a regulariser). Each is weighed for itself, and what is computed from them follows.
#pragma once

#include "ir/ops/structure/GraphOps.h"

namespace dg::passes {

/// How a step is cut, as far as the weight of a term depends on it.
struct StepCut {
  int64_t microbatches = 1; ///< of a step
  int64_t pieces = 1;       ///< of a batch
  int64_t padded = 0;       ///< rows of a step that hold no sample
};

class LossWeigher {
public:
  /// Adds the input sample_weight to the graph, which outlives it.
  LossWeigher(ir::GraphOp graph, StepCut cut);

  /// The scalar as a sum over rows, each by its weight, which adds up over ranks and micro-batches. Built before the
  /// graph's return. Emits an error where it is no such sum.
  mlir::FailureOr<mlir::Value> weigh(mlir::Value scalar);
  /// The mean over samples of what a loss says of them.
  mlir::Value mean(ir::LossOp loss, ir::SampleMeasure measure);
  /// The losses among the terms, in the order in which they are added.
  llvm::ArrayRef<ir::LossOp> losses() const { return found; }
  /// [samples · positions, …] as [samples, positions, …].
  mlir::Value bySample(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) const;
  /// Erases what was weighed and has no reader any more.
  void eraseReplaced();

private:
  void findSamples();
  void meanOfFixedLosses();
  mlir::FailureOr<mlir::Value> weighTerm(mlir::Value value);
  mlir::FailureOr<mlir::Value> weighVarying(mlir::Value value);
  mlir::FailureOr<mlir::Value> weighLoss(ir::LossOp loss);
  mlir::FailureOr<mlir::Value> weighSum(mlir::Operation *op, int64_t dim, bool isMean);
  mlir::FailureOr<mlir::Value> weighFunction(mlir::Operation *op);
  /// The weights in the element type of the value.
  mlir::Value weightsFor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) const;
  bool varies(mlir::Value value) const { return varying.contains(value); }
  /// The dimension that counts samples, SampleDims::nowhere, or nothing where a rule lost sight of them.
  std::optional<int64_t> samplesOf(mlir::Value value) const;

  ir::GraphOp graph;
  const StepCut cut;
  int64_t rows = 0; ///< of a micro-batch
  mlir::BlockArgument weights;
  llvm::DenseSet<mlir::Value> varying; ///< depend on an input
  llvm::DenseMap<mlir::Value, int64_t> samples;
  llvm::DenseMap<mlir::Value, mlir::Value> weighed;
  llvm::SmallVector<mlir::Operation *> replaced; ///< after what they read
  llvm::SmallVector<ir::LossOp> found;
};

} // namespace dg::passes
