// SPDX-License-Identifier: Apache-2.0
// How a graph inside another is cut over a mesh: by the rules of its ops, taken together.
#pragma once

#include "ir/ops/structure/ControlOps.h"

namespace dg::ir {

/// How operands and results of an op lie to the values of its bodies. Arguments are: carried, sliced (a dimension less
/// than the operand), whole; returned values: carried, stacked (a dimension less than the result), sums.
struct BodyLayout {
  llvm::SmallVector<mlir::Region *> bodies;
  unsigned firstOperand = 0;  ///< the operand of argument 0
  unsigned firstReturned = 0; ///< the returned value of result 0
  unsigned numCarried = 0, numSliced = 0, numStacked = 0, numSums = 0;

  int64_t argumentOffset(size_t index) const { return index >= numCarried && index < numCarried + numSliced; }
  int64_t resultOffset(size_t index) const { return index >= numCarried && index < numCarried + numStacked; }
};

/// The factors of an op with bodies: sets of dimensions, over all values of the bodies, of which each op inside says
/// that they can be cut together. A sum may be partial along a factor; everything else that a body returns has it or
/// does not depend on it.
ShardingRule bodyShardingRule(mlir::Operation *op, const BodyLayout &layout);

/// Gives the bodies the types of one shard, after the operands of the op have theirs.
void localizeBodies(mlir::Operation *op, const BodyLayout &layout);

} // namespace dg::ir
