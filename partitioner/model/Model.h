// SPDX-License-Identifier: Apache-2.0
// The model as the search sees it: forward ops in program order, each with its gradient work and its sharding rule, and
// the values between them. Made by passes/ExtractModel from a whole, differentiated graph; sizes are those of the whole
// batch. Plain data: any thread may read it.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dg::partitioner {

inline constexpr uint32_t noOp = UINT32_MAX;
inline constexpr int32_t notPinned = -2;

/// What is computed between two points of a step: kernels by the roofline.
struct Work {
  double flops = 0;       ///< all of it
  double matrixFlops = 0; ///< of products and convolutions
  double bytes = 0;       ///< read and written by kernels, chains of elementwise ops counted as one kernel
  uint32_t numKernels = 0;
  std::string op = {}; ///< of the kernel with most work, "dg.matmul"
  Work &operator+=(const Work &other) {
    if (std::pair(flops, bytes) < std::pair(other.flops, other.bytes))
      op = other.op;
    flops += other.flops;
    matrixFlops += other.matrixFlops;
    bytes += other.bytes;
    numKernels += other.numKernels;
    return *this;
  }
};

/// A tensor that an op makes or that enters the graph. Parameters are not values; they belong to the op that reads
/// them.
struct ModelValue {
  uint32_t producer = noOp; ///< noOp: an input of the graph, which every stage has
  double elements = 0;      ///< of the whole batch
  bool isFloat = true;      ///< takes the precision of the run; else 4 bytes
  bool isPerSample = true;  ///< its first dimension is cut with the samples
  bool isSaved = false;     ///< the backward pass reads it
};

/// One operand or result: the value, and for each dimension the factor that cuts it (-1: it must stay whole).
struct ModelUse {
  uint32_t value = 0;
  std::vector<int32_t> factors;
  uint32_t operand = 0; ///< its number among all operands of the op, parameters included
};

/// A parameter that this op is the first to read.
struct ModelParameter {
  std::string name;
  double elements = 0;
  std::vector<int32_t> factors; ///< as in ModelUse, of the op that reads it
  uint32_t operand = 0;
};

/// A forward op, its gradients and the update of its parameters: what is placed and cut as one.
struct ModelOp {
  std::string name, kind, source;   ///< "b3_q/matmul", "dg.matmul", "gpt.mlir:12:5"
  std::vector<int64_t> factorSizes; ///< of the sharding rule
  std::vector<uint8_t> isCuttable;  ///< per factor: may be cut over the tensor axis
  int64_t origin = -1;              ///< the author's op that it is a part of; those parts stay on one stage
  int32_t pinnedChoice = notPinned; ///< a user's wish: the factor to cut, or -1 to cut none
  int32_t pinnedStage = notPinned;  ///< a user's wish
  bool isPerSample = true;          ///< the work shrinks with the samples
  bool isView = false;              ///< linear in its one operand: summands of a gradient may pass through it
  std::vector<ModelUse> operands, results;
  std::vector<ModelParameter> parameters;
  Work forward, inputGradient, weightGradient; ///< of the whole batch
};

struct Model {
  std::string name;
  int64_t numSamples = 1;    ///< the batch that all sizes are for: of a whole step, or
  bool isMicrobatch = false; ///< of one micro-batch over all data ranks
  bool isTraining = true;
  std::vector<ModelOp> ops; ///< operands come before their users
  std::vector<ModelValue> values;
  double parameterElements = 0;
  double stateElements = 0;  ///< of the optimizer, beside the parameters
  double updateElements = 0; ///< read and written by the update, all parameters together
};

/// The positions where the model can be taken apart: every value that is used at or after position p and was made
/// before it was made by op p-1 alone. Always holds 0 and the number of ops. Between two of them lies a segment; a
/// transformer has two for each layer. O(uses).
std::vector<uint32_t> findSegments(const Model &model);

/// The positions, in order, where a pipeline stage may begin besides 0: no author's op has parts on both sides.
std::vector<uint32_t> findStagePlaces(const Model &model);

/// A number for each segment, equal where the segments are the same work with the same rule at the same distances, so
/// that what is found out about one holds for all. Exact: texts are compared, not hashes.
std::vector<uint32_t> foldSegments(const Model &model, const std::vector<uint32_t> &bounds);

/// Succeeds where indices are in range and every operand is made before it is used; badInput otherwise.
Status checkModel(const Model &model);

} // namespace dg::partitioner
