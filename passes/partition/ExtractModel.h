// SPDX-License-Identifier: Apache-2.0
// The bridge to the partitioner's search: a whole graph, differentiated and with its updates, as partitioner::Model.
#pragma once

#include "ir/ops/structure/GraphOps.h"
#include "partitioner/model/Model.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace dg::passes {

/// The forward ops of a graph, in program order, without those that are made of parameters and constants alone: these
/// are wherever their readers need them. `ops`, where given, receives the op that each op of the model stands for.
/// Sizes are those of the graph's own batch.
partitioner::Model extractModel(ir::GraphOp graph, llvm::SmallVectorImpl<mlir::Operation *> *ops = nullptr);

/// Reads @train, or else @infer (a job that trains is planned for training, whatever else it holds), after the passes
/// of buildWholePipeline, whose batch must be bound to all samples of a step. Reports an error at the module where it
/// has neither.
mlir::FailureOr<partitioner::Model> extractModel(mlir::ModuleOp module);

} // namespace dg::passes
