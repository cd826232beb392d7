// SPDX-License-Identifier: Apache-2.0
// Binds symbolic dimensions and deduces the type of every value, so that a person writes no shape that can be deduced.
#include "ir/GraphOps.h"
#include "ir/TypeDeduction.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_DEDUCETYPES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct DeduceTypesPass : impl::DeduceTypesBase<DeduceTypesPass> {
  using DeduceTypesBase::DeduceTypesBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(bindInputs(graph)) || failed(deduce(graph)))
        return signalPassFailure();
  }

private:
  LogicalResult bindInputs(GraphOp graph) {
    SmallVector<Attribute> types;
    for (BlockArgument argument : graph.getBody().getArguments()) {
      unsigned index = argument.getArgNumber();
      auto type = cast<RankedTensorType>(cast<TypeAttr>(graph.getInputTypes()[index]).getValue());
      SmallVector<int64_t> shape(type.getShape());
      for (int64_t &size : shape) {
        if (!ShapedType::isDynamic(size))
          continue;
        if (batch <= 0)
          return graph.emitOpError() << "input '" << graph.getInputName(index) << "' has type " << type
                                     << " with a dimension that nothing binds: give --batch N (or --bind batch=N)";
        size = batch;
      }
      argument.setType(RankedTensorType::get(shape, type.getElementType()));
      if (failed(checkTensorSize(graph, argument.getType())))
        return failure();
      types.push_back(TypeAttr::get(argument.getType()));
    }
    graph.setInputTypesAttr(ArrayAttr::get(&getContext(), types));
    return success();
  }

  LogicalResult deduce(GraphOp graph) {
    for (Operation &op : graph.getBody().front()) {
      if (auto parameter = dyn_cast<ParameterOp>(op)) {
        parameter.getResult().setType(parameter.getType());
        if (failed(checkTensorSize(&op, parameter.getType())))
          return failure();
        continue;
      }
      if (!isa<InferTypeOpInterface>(op) && llvm::any_of(op.getResultTypes(), isAny))
        return op.emitOpError("comes only from the compiler's own split phase: a model cannot contain it");
      if (failed(deduceResults(&op)))
        return failure();
    }
    return success();
  }
};

} // namespace
} // namespace dg::passes
