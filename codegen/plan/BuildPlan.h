// SPDX-License-Identifier: Apache-2.0
// From chunks in the IR to the plan: every value a buffer, every op a task. Order, slots and memory come afterwards
// (partitioner/schedule/PlanSchedule.h, partitioner/memory/PlanMemory.h), which need no IR.
#pragma once

#include "codegen/plan/KernelSet.h"
#include "runtime/plan/ChunkRole.h"
#include "runtime/plan/Plan.h"

namespace dg::codegen {

/// What the plan says of the job as a whole.
struct PlanOptions {
  plan::Mesh mesh;
  plan::Model model;
  int64_t batch = 0; ///< samples of one step
  uint32_t microbatches = 1;
};

/// What a dg.literal holds: the initial tensor of the plan's value of this name.
struct LiteralTensor {
  std::string name;
  mlir::DenseElementsAttr elements;
};

/// Builds values, tasks, chunks and ports of every program in a module that has been through the split phase, and adds
/// their kernels to `kernels`. Moves communication ops up to where their operands
/// are ready, so that they start early. Adds to `literals` what the package has to hold beside the parameters, and to
/// `roles` what each chunk of the plan is to its schedule. Errors are emitted on the op.
mlir::FailureOr<plan::Plan> buildPlan(mlir::ModuleOp module, const PlanOptions &options, KernelSet &kernels,
                                      std::vector<LiteralTensor> &literals, std::vector<plan::ChunkRole> &roles);

} // namespace dg::codegen
