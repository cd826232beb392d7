// SPDX-License-Identifier: Apache-2.0
// Closes the partition phase: from here on every op has a stage, and every operand and result a sharding of its rank
// whose axes divide it.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/Sharding.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYPARTITION
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifyPartitionPass : impl::VerifyPartitionBase<VerifyPartitionPass> {
  void runOnOperation() override {
    mesh = getMesh(getOperation());
    for (auto graph : getOperation().getOps<GraphOp>())
      for (Operation &op : graph.getBody().front())
        if (failed(verify(&op)))
          return signalPassFailure();
  }

private:
  LogicalResult verify(Operation *op) const {
    if (!isa<ReturnOp>(op) && getPlace(op).getStage() < 0)
      return op->emitOpError("has no stage after the partition phase, expected one from --dg-plan-graph");
    OpShardings shardings = getShardings(op);
    if (shardings.operands.size() != op->getNumOperands() || shardings.results.size() != op->getNumResults())
      return op->emitOpError() << "has " << getPlace(op).getShardings().size()
                               << " shardings after the partition phase, expected one for each of its "
                               << op->getNumOperands() << " operands and " << op->getNumResults()
                               << " results from --dg-assign-shardings";
    for (auto [value, sharding] : llvm::zip_equal(op->getOperands(), shardings.operands))
      if (failed(verify(op, value, sharding)))
        return failure();
    for (auto [value, sharding] : llvm::zip_equal(op->getResults(), shardings.results))
      if (failed(verify(op, value, sharding)))
        return failure();
    return success();
  }

  LogicalResult verify(Operation *op, Value value, ShardingAttr sharding) const {
    if (int64_t(sharding.getDims().size()) != tensorOf(value).getRank())
      return op->emitOpError() << "has a sharding of " << sharding.getDims().size() << " dimensions for a "
                               << value.getType();
    llvm::SmallDenseSet<StringAttr> axes;
    for (ArrayRef<StringAttr> each : {sharding.getDims(), sharding.getPartial()})
      for (StringAttr axis : each)
        if (!axis.empty() && !axes.insert(axis).second)
          return op->emitOpError() << "has the axis " << axis << " twice in the sharding of a " << value.getType()
                                   << ", expected each axis at most once";
    for (auto [dim, axis] : llvm::enumerate(sharding.getDims()))
      if (!axis.empty() && tensorOf(value).getDimSize(int64_t(dim)) % mesh.sizeOf(axis.str()) != 0)
        return op->emitOpError() << "has dimension " << dim << " of a " << value.getType() << " cut over "
                                 << axis.getValue() << "=" << mesh.sizeOf(axis.str())
                                 << ", expected a size that it divides";
    return success();
  }

  plan::Mesh mesh;
};

} // namespace
} // namespace dg::passes
