// SPDX-License-Identifier: Apache-2.0
// Binds symbolic dimensions and deduces the type of every value, so that a person writes no shape that can be deduced.
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/TypeDeduction.h"
#include "passes/Passes.h"
#include "passes/UsageError.h"
#include "passes/train/AddedInputs.h"
#include "passes/train/LossScale.h"

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
      if (failed(checkAuthorship(graph)) || failed(bindInputs(graph)) || failed(deduce(graph)))
        return signalPassFailure();
  }

private:
  /// A model has no op, and no name, that the compiler adds to it later. What an author writes infers its types, or is
  /// a parameter or the end of a graph.
  LogicalResult checkAuthorship(GraphOp graph) {
    for (auto name : graph.getInputNames().getAsRange<StringAttr>())
      if (name == sampleWeightName || name == sampleIndexName)
        return graph.emitOpError() << "has an input named " << name
                                   << ", under which every job is fed something else: give it another name";
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
      if (StringRef rest = parameter.getParam();
          graph.getSymName() == "loss" && rest.consume_front(lossScaleName) && (rest.empty() || rest.front() == '.'))
        return parameter.emitOpError() << "has the name \"" << parameter.getParam()
                                       << "\", under which training in f16 keeps its loss scale: give it another name";
    WalkResult walk = graph.getBody().walk([](Operation *op) {
      if (isa<InferTypeOpInterface, ParameterOp, ReturnOp>(op))
        return WalkResult::advance();
      op->emitOpError("comes only from the compiler's own later phases: a model cannot contain it");
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }

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
          return emitOpUsageError(graph) << "input '" << graph.getInputName(index) << "' has type " << type
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
      if (failed(deduceResults(&op)))
        return failure();
    }
    return success();
  }
};

} // namespace
} // namespace dg::passes
