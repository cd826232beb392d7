// SPDX-License-Identifier: Apache-2.0
// What the ops that reduce dimensions share: their type, their sharding, and the walk from an input to its results.
#pragma once

#include "ir/dialect/HostTensorAccess.h"
#include "ir/rules/TypeInference.h"

#include "llvm/ADT/STLExtras.h"

namespace dg::ir {

/// The shape of the result with the reduced dimensions kept as 1.
inline llvm::SmallVector<int64_t> keptShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims) {
  llvm::SmallVector<int64_t> kept(shape);
  for (int64_t dim : dims)
    kept[dim] = 1;
  return kept;
}

/// Each number names another dimension. They are anybody's: a set of LLVM's would take two of them for its own marks.
inline bool areDimsOf(llvm::ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [number, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || llvm::is_contained(dims.take_front(number), dim))
      return false;
  return true;
}

/// The type of an op with `dims`, which vanish, or stay with size 1 with `keep`.
template <typename Adaptor> mlir::FailureOr<mlir::Type> inferReduction(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  llvm::ArrayRef<int64_t> dims = op.getDims();
  if (!areDimsOf(dims, input.getRank()))
    return reject("reduces ", input, " over dimensions ", op.getDimsAttr(), ", expected different numbers from 0 to ",
                  input.getRank() - 1);
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(keptShape(input.getShape(), dims)))
    if (op.getKeep() || !llvm::is_contained(dims, int64_t(dim)))
      shape.push_back(size);
  return mlir::RankedTensorType::get(shape, input.getElementType());
}

/// Dimensions that stay move with those of the result. Those that vanish may be cut where the results of ranks can be
/// added up.
inline ShardingRule reductionRule(mlir::Operation *op, llvm::ArrayRef<int64_t> dims, bool keep, bool isSum) {
  ShardingRule rule = emptyShardingRule(op);
  auto input = tensorOf(op->getOperand(0));
  int64_t resultDim = 0;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    bool isReduced = llvm::is_contained(dims, dim);
    if (!isReduced || isSum) {
      int32_t factor = rule.addFactor(input.getDimSize(dim));
      rule.operands[0][dim].push_back(factor);
      if (!isReduced)
        rule.results[0][resultDim].push_back(factor);
    }
    if (!isReduced || keep)
      ++resultDim;
  }
  return rule;
}

/// Folds each element of the input into the element of the result that it belongs to: result = combine(result,
/// element).
template <typename Combine>
void foldInto(const HostTensor &input, llvm::ArrayRef<int64_t> dims, HostTensor &result, Combine combine) {
  auto in = input.data.begin();
  forEachIndex(input.shape, {broadcastStrides(keptShape(input.shape, dims), input.shape)},
               [&](llvm::ArrayRef<int64_t> at) {
                 double &sum = result.data[at[0]];
                 sum = combine(sum, *in++);
               });
}

/// `axis` counted from the first dimension, where it may be negative; nothing where there is no such dimension.
inline std::optional<int64_t> normalizedAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

/// Calls `visit(first)` for every line of a tensor along `axis`; its elements are `lineStride` apart.
template <typename Visit> void forEachLine(llvm::ArrayRef<int64_t> shape, int64_t axis, Visit visit) {
  llvm::SmallVector<int64_t> others(shape);
  others[axis] = std::min<int64_t>(others[axis], 1);
  forEachIndex(others, {stridesOf(shape)}, [&](llvm::ArrayRef<int64_t> at) { visit(at[0]); });
}
inline int64_t lineStride(llvm::ArrayRef<int64_t> shape, int64_t axis) { return stridesOf(shape)[axis]; }

} // namespace dg::ir
