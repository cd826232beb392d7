// SPDX-License-Identifier: Apache-2.0
// A model split for its ranks: from passes to the plan with its memory, once for a plan by hand, and for a searched one
// until it fits. Kept apart from Compile.cpp, which reads the model before and writes the package after it.
#pragma once

#include "codegen/plan/BuildPlan.h"
#include "compiler/Compile.h"
#include "compiler/Messages.h"
#include "compiler/PhaseLog.h"
#include "compiler/Planning.h"
#include "partitioner/model/Cluster.h"

#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <optional>

namespace dg::compiler {

/// How the samples of a step are cut: the numbers behind --batch, --microbatches, --accumulate and the data axis.
struct BatchPlan {
  int64_t samples = 0;      ///< of a step
  int64_t microbatches = 1; ///< of a step
  int64_t rows = 0;         ///< of one micro-batch over all data ranks, padding included
};
Result<BatchPlan> planBatch(const Request &request, const plan::Mesh &mesh);

/// What the flags and the model say of the step.
struct StepSource {
  plan::Model model;
  std::string optimizer;
  bool isTraining = true;
  std::vector<codegen::Target> targets;
  /// Of a model whose shapes are computed when it is read: the same with other rows in a micro-batch. The module is
  /// the source's until it is called again.
  std::function<Result<mlir::ModuleOp>(int64_t rows)> readAgain;
};

struct JobPlan {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< split
  plan::Plan plan;                          ///< without prediction
  std::vector<codegen::LiteralTensor> literals;
  std::unique_ptr<codegen::KernelSet> kernels;
  PhaseLog phases;
  partitioner::Cluster cluster;
  std::optional<PlannedStep> planned; ///< of a searched plan: what the search found, and why
  std::vector<plan::Plan> smaller;    ///< for smaller batches, in rising order; kernels and literals are shared
};

/// Splits a copy of the module as the flags say: mesh, micro-batches and schedule by hand, or all that a search finds,
/// searched again with less memory where the arena turns out larger than a device, of which `messages` then tells.
/// With Emit::dg only `module` is set.
Result<JobPlan> planJob(mlir::ModuleOp module, const Request &request, const StepSource &source, Messages &messages);

/// Adds the plan for `batch` samples, fewer than the job's, without a prediction: the kernels that the job has already
/// are the same.
Status addSmaller(JobPlan &job, mlir::ModuleOp module, const Request &request, const StepSource &source, int64_t batch);

} // namespace dg::compiler
