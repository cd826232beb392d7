// SPDX-License-Identifier: Apache-2.0
// Trains a model twice, whole in the reference executor and split on simulated ranks, and says where the two differ.
#pragma once

#include "tests/unit/reference/SimulatedRanks.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::passes::test {

/// What is trained, and on what.
struct Training {
  std::string optimizer;             ///< with its learning rate, which both runs take
  std::vector<int64_t> sampleCounts; ///< samples of each step
  int64_t indexBound = 1;            ///< integer inputs are below it
  uint64_t seed = 1;
  int64_t numEvaluated = 0; ///< samples of the evaluation at the end; 0: as many as the first step has
};

/// How it is split.
struct Split {
  std::string mesh = "";
  int64_t microbatches = 1;
  int64_t zero = 0;
  int64_t chunksPerStage = 1; ///< see PipelineOptions
  bool isFolded = false, splitsBackward = false;
  std::string precision = "f32";
  bool reducesWide = false; ///< see PipelineOptions
  double lossScale = 0;
  bool rounds = false;       ///< every value is rounded to its type, else none is
  bool isRecomputed = false; ///< the search lets every stage compute its forward pass again
  int64_t savedBytes = 0;    ///< of each part of the model, by computing values again
  bool slicesSends = false;  ///< every value that is whole on the tensor ranks crosses stages in parts, see SliceSends
};

/// What a run leaves.
struct Outcome {
  std::vector<double> losses, gradientNorms; ///< by step; norms where the compiler makes them
  ir::TensorMap parameters;                  ///< at the end, optimizer state too
  double evalLoss = 0;
  std::optional<double> accuracy;
};

/// Either an outcome, or what the compiler or the executor said against it.
struct Attempt {
  std::optional<Outcome> outcome;
  std::string error;
};

/// The seed of the initial values of both.
inline constexpr uint64_t parameterSeed = 7;

/// The inputs of @loss by name, for each step and then for the evaluation: what both runs are fed.
std::vector<ir::TensorMap> drawSamples(mlir::ModuleOp model, const Training &training);

/// True where the message is one by which a pass refuses a mesh, and says what does not fit.
bool isClearRejection(const std::string &error);

/// The model, which stays the caller's, up to its optimizer, on one rank, without micro-batches.
Attempt trainWhole(mlir::ModuleOp model, const Training &training);

/// The model through the whole pipeline, with room for the largest step. Null, and why, where a pass fails.
std::pair<mlir::OwningOpRef<mlir::ModuleOp>, std::string> splitModel(mlir::ModuleOp model, const Training &training,
                                                                     const Split &split);

/// What splitModel made of the model, on the simulated ranks of its mesh.
Attempt trainSplit(mlir::ModuleOp model, mlir::ModuleOp chunks, const Training &training, const Split &split);

/// splitModel, then trainSplit.
Attempt splitAndTrain(mlir::ModuleOp model, const Training &training, const Split &split);

/// Nothing where each loss, the evaluation and every parameter agree within `tolerance`, relative to the larger of the
/// largest element and 0.01; else the first that does not, in words.
std::string firstDifference(const Outcome &whole, const Outcome &split, double tolerance);

} // namespace dg::passes::test
