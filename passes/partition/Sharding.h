// SPDX-License-Identifier: Apache-2.0
// What the partition and split passes share: shardings of inputs, local types, and reading what AssignShardings wrote.
#pragma once

#include "ir/dialect/Dialect.h"
#include "runtime/plan/Plan.h"

namespace dg::passes {

/// The sharding of a graph input: samples (dimension 0) over "data", the rest whole.
ir::ShardingAttr inputSharding(mlir::RankedTensorType type, const plan::Mesh &mesh);

/// The type of one shard. Every cut dimension divides evenly; AssignShardings sees to it.
mlir::RankedTensorType localType(mlir::RankedTensorType type, ir::ShardingAttr sharding, const plan::Mesh &mesh);

/// Whether a factor stands first in every dimension that holds it. To cut a factor is to cut every dimension whose
/// first it is, so that one behind another cannot be cut.
bool isMajorEverywhere(const ir::ShardingRule &rule, int32_t factor);

/// What AssignShardings decided: the sharding that each operand must have, and the one that each result has. Both empty
/// where it has not run.
struct OpShardings {
  llvm::ArrayRef<ir::ShardingAttr> operands, results;
};
OpShardings getShardings(mlir::Operation *op);

} // namespace dg::passes
