// SPDX-License-Identifier: Apache-2.0
#include "passes/shape/SampleRows.h"

#include "passes/shape/SampleDims.h"

using namespace mlir;

namespace dg::passes {

using namespace ir;

SmallVector<bool> findSampleRows(GraphOp graph) {
  int64_t rows = 0;
  for (BlockArgument argument : graph.getBody().getArguments())
    if (auto type = tensorOf(argument); rows == 0 && type.getRank() > 0)
      rows = type.getDimSize(0);
  SampleDims dims(graph);
  for (auto op : graph.getBody().getOps<ShardingRuleOp>())
    dims.follow(op, op.getShardingRule());
  SmallVector<bool> found;
  for (Value value : graph.getReturn().getOperands()) {
    auto type = tensorOf(value);
    // With one row the whole micro-batch is one sample.
    found.push_back(type.getRank() > 0 && type.getDimSize(0) == rows && (rows == 1 || dims.of(value).value_or(0) == 0));
  }
  return found;
}

} // namespace dg::passes
