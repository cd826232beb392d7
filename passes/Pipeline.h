// SPDX-License-Identifier: Apache-2.0
// The order of passes: the one place that has it.
#pragma once

#include "passes/partition/PlanGraph.h"
#include "runtime/plan/Plan.h"

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace dg::passes {

struct PipelineOptions {
  plan::Mesh mesh;
  std::string loss;      ///< empty: the model's own
  std::string optimizer; ///< empty: the model's own
  int64_t batch = 0;     ///< rows of one micro-batch over all data ranks, padding included; 0: not bound
  int64_t microbatches = 1;
  int64_t paddedRows = 0;          ///< of a full step: those that hold no sample
  int64_t batchPieces = 1;         ///< micro-batches of a batch, those of other batches of the step not counted
  int64_t chunksPerStage = 1;      ///< parts of the model that a rank holds
  bool isFolded = false;           ///< the parts go down the stages and up again
  bool splitsBackward = false;     ///< gradients of weights get chunks of their own
  int64_t zero = 0;                ///< cut over the data ranks: 1 optimizer state, 2 also gradients, 3 also parameters
  bool metrics = false;            ///< evaluation returns what metrics are computed from
  std::vector<std::string> frozen; ///< patterns of parameters that are not trained
  std::vector<std::string> frozenStatistics;   ///< of running statistics that are not moved
  PlanRequest planning;                        ///< micro-batches, chunks and ZeRO are those above
  GraphPlan *found = nullptr;                  ///< where given, gets what PlanGraph decides
  bool storesScores = false;                   ///< attention keeps its scores in memory, see Decompose
  std::string precision = "f32";               ///< f32, bf16 or f16
  std::vector<std::string> precisionOverrides; ///< "head.*=f32", see MixedPrecision
  double lossScale = 0;                        ///< what the scale of an f16 loss starts with; 0: it is not scaled
  int64_t growthInterval = 0;                  ///< steps after which it is doubled; 0: AddOptimizer's default
  bool reducesWide = false;                    ///< gradients are summed over data ranks in f32
  bool isTraining = true;
  std::vector<int64_t> savedBytes; ///< by which the peak of each part shall fall, see Rematerialize; empty: none
  double flopsPerByte = 10;        ///< of the device
};

/// From a model as it was written to a whole graph with gradients and updates: what the search for a plan looks at.
void buildWholePipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// From a model as it was written to chunks with local types, ready for codegen.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

} // namespace dg::passes
