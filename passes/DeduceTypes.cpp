// SPDX-License-Identifier: Apache-2.0
// Binds symbolic dimensions and deduces the type of every value, so that a person writes no shape that can be deduced.
#include "ir/Dialect.h"
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
      types.push_back(TypeAttr::get(argument.getType()));
    }
    graph.setInputTypesAttr(ArrayAttr::get(&getContext(), types));
    return success();
  }

  LogicalResult deduce(GraphOp graph) {
    for (Operation &op : graph.getBody().front()) {
      if (auto parameter = dyn_cast<ParameterOp>(op)) {
        parameter.getResult().setType(parameter.getType());
        continue;
      }
      auto inference = dyn_cast<InferTypeOpInterface>(op);
      if (!inference)
        continue;
      SmallVector<Type> types;
      if (failed(inference.inferReturnTypes(&getContext(), op.getLoc(), op.getOperands(),
                                            op.getDiscardableAttrDictionary(), op.getPropertiesStorage(),
                                            op.getRegions(), types)))
        return failure();
      for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
        result.setType(type);
    }
    return success();
  }
};

} // namespace
} // namespace dg::passes
