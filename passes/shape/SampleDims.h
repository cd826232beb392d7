// SPDX-License-Identifier: Apache-2.0
// Where the samples of a batch are: dimension 0 of every input counts them, and the sharding rules say where that
// dimension goes.
#pragma once

#include "ir/ops/structure/GraphOps.h"

namespace dg::passes {

/// Follows the samples through a graph, op by op, in order.
class SampleDims {
public:
  /// What an op does with the samples of its operands.
  struct Step {
    std::optional<int32_t> factor; ///< of the op's rule, that counts samples
    bool isKept = false;           ///< a result has that factor: no sum over samples
    bool hasTwo = false;           ///< another operand counts them by another factor: each meets each other, as in x·xᵀ
    bool isLost = false;           ///< an operand has them in a dimension that the rule does not follow
  };

  /// Knows the inputs, parameters, constants and losses.
  explicit SampleDims(ir::GraphOp graph);

  /// Learns where the results of the op have the samples.
  Step follow(mlir::Operation *op, const ir::ShardingRule &rule);

  /// A dimension, `nowhere`, or nothing where a rule lost sight of them.
  std::optional<int64_t> of(mlir::Value value) const;
  bool has(mlir::Value value) const { return of(value).value_or(nowhere) != nowhere; }

  static constexpr int64_t nowhere = -1;

private:
  llvm::DenseMap<mlir::Value, int64_t> dims;
};

} // namespace dg::passes
