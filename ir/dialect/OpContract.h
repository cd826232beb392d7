// SPDX-License-Identifier: Apache-2.0
// The plain data that the op interfaces speak in: sharding rules, costs, classes of precision, tensors of the reference
// executor.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dg::ir {

/// Which dimensions move together, in the manner of einsum. A factor is an index that runs over the op; each dimension
/// of an operand or result is the product of its factors, major first (one factor for most ops, several for reshape,
/// none for a dimension that must stay whole). To cut a factor over a mesh axis is to cut every dimension whose *first*
/// factor it is; operands without the factor are needed whole, results without it become partial sums over the axis.
struct ShardingRule {
  llvm::SmallVector<int64_t> factorSizes;
  /// [operand or result][dimension] -> factors, major first.
  llvm::SmallVector<llvm::SmallVector<llvm::SmallVector<int32_t, 2>>> operands, results;

  int32_t addFactor(int64_t size) {
    factorSizes.push_back(size);
    return int32_t(factorSizes.size()) - 1;
  }
  /// A new factor that is all of these dimensions of operands [operand, dimension], and of the first result.
  void tie(int64_t size, llvm::ArrayRef<std::pair<unsigned, int64_t>> operandDims, std::optional<int64_t> resultDim) {
    int32_t factor = addFactor(size);
    for (auto [operand, dim] : operandDims)
      operands[operand][dim].push_back(factor);
    if (resultDim)
      results[0][*resultDim].push_back(factor);
  }
};

/// A rule in which operands and results have the shapes they have and nothing moves together yet: fill in from there.
ShardingRule emptyShardingRule(mlir::Operation *op);

/// Dimensions of equal place (counted from the last) and size move together, over all operands and results; a repeated
/// dimension has size 1 and stays whole. The results have one shape, to which the operands broadcast.
ShardingRule broadcastRule(mlir::Operation *op);

struct OpCost {
  double flops = 0;
  double bytes = 0;
};

/// Flops = elements of the results; bytes = those of operands and results.
OpCost elementwiseCost(mlir::Operation *op);
/// Flops for each element of the first operand; bytes = those of operands and results.
OpCost costPerElement(mlir::Operation *op, double flops);
/// Bytes of operands and results together.
double operandAndResultBytes(mlir::Operation *op);

/// Errors of an op that does not exist yet.
struct Rejection {
  std::optional<mlir::Location> location;
  llvm::StringRef name;

  /// Fails with `'dg.name' op <message>` at the location, if there is one.
  template <typename... Parts> mlir::LogicalResult operator()(Parts &&...message) const {
    return mlir::emitOptionalError(location, "'", name, "' op ", std::forward<Parts>(message)...);
  }
};

/// A gradient for each operand; null where there is none.
using Gradients = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;

/// What an op gains or loses with 16 bits.
enum class PrecisionClass {
  undecided,  ///< the definition of the op does not say: it does not compile
  product,    ///< sums in f32 whatever its factors have
  table,      ///< rows of a table are the first activations
  follows,    ///< element by element, or only moved: as exact as what it reads
  rows,       ///< follows, but its parameters stay f32: a norm whose arithmetic is f32 inside
  loss,       ///< needs the digits of f32
  statistics, ///< a sum over many elements
  steep,      ///< its slope or range is larger than 16 bits hold
  asWritten,  ///< nothing is known to be gained
};

/// Which integers an operand may hold: from 0, or from -places where negative ones count from the end, to below places.
struct IndexBound {
  int64_t places = 0; ///< 0: the operand has no places
  bool countsFromEnd = false;
};

/// A tensor on the host in the reference executor: row-major, every element a double (integers are exact up to 2^53).
struct HostTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  int64_t numElements() const {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    return n;
  }
};

/// What an evaluation reads and writes: a tensor for each operand, and for each result.
using HostOperands = llvm::ArrayRef<HostTensor>;
using HostResults = llvm::MutableArrayRef<HostTensor>;

/// A mean over samples, sample by sample. The whole is Σ value / Σ count, where a sample without count counts 1.
struct SampleMeasure {
  mlir::Value value; ///< [samples]; null: there is no such measure
  mlir::Value count; ///< [samples]: by positions that are not ignored, and weights of classes; may be null
};

/// What metrics of an evaluation are computed from, beside its loss. Each is null where the loss has no such thing.
struct SampleFacts {
  mlir::Value target;    ///< [samples, …]: the class that is right; below 0 where the position does not count
  mlir::Value predicted; ///< [samples, …]: the class with the largest score
  mlir::Value rank;      ///< [samples, …]: how many classes come before the target's by their scores
  mlir::Value score;     ///< [samples, …], of two classes: how much is in favour of class 1
  mlir::Value square;    ///< [samples]: mean of (prediction - target)²
  mlir::Value absolute;  ///< [samples]: mean of |prediction - target|
};

/// What a training form may need to know of the samples of its micro-batch, and what it leaves behind.
struct TrainingScope {
  mlir::Value share;        ///< [rows]: the part of each row in the micro-batch; 0 for padding, together 1
  mlir::Value total;        ///< scalar: the part of the micro-batch in the step; 0 where it has no sample
  mlir::Value inverseCount; ///< scalar: 1 / samples of the micro-batch
  /// [rows], i64: the number of each row's sample in the step, whatever rank and micro-batch it was dealt to. An input
  /// of the graph from the first call on.
  std::function<mlir::Value()> sampleIndex;

  /// state += rate · (Σ over the step's micro-batches of `observed` - state).
  struct Update {
    mlir::Value state; ///< a dg.parameter
    mlir::Value observed;
    double rate;
  };
  llvm::SmallVector<Update> updates;
};

/// The scalars of a step, as dg_scalars of the kernel ABI has them.
struct RunScalars {
  double lr = 0;
  int64_t step = 1;
  uint64_t seed = 0;
};

} // namespace dg::ir
