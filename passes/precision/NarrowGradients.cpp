// SPDX-License-Identifier: Apache-2.0
// Lets gradients travel between data ranks in 16 bits: each is rounded after the last micro-batch, summed over the
// ranks as it is (in f32, one rounding for each addition) and widened for its update.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/precision/PrecisionRules.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_NARROWGRADIENTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct NarrowGradientsPass : impl::NarrowGradientsBase<NarrowGradientsPass> {
  using NarrowGradientsBase::NarrowGradientsBase;

  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<GraphOp>("train");
    if (!graph)
      return;
    Type low = parsePrecision(&getContext(), precision);
    if (!low || !isHalf(low)) {
      getOperation().emitError() << "is to sum gradients in '" << precision << "', expected bf16 or f16";
      return signalPassFailure();
    }
    llvm::StringMap<ParameterOp> parameters;
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
      parameters[parameter.getParam()] = parameter;
    ReturnOp end = graph.getReturn();
    OpBuilder builder(end);
    for (OpOperand &operand : end->getOpOperands()) {
      std::string name = end.getResultName(operand.getOperandNumber());
      StringRef text = name;
      auto type = tensorOf(operand.get()).getElementType();
      if (!text.consume_front("grad ") || !parameters.contains(text) || !type.isF32())
        continue;
      // Only the second cast bears the parameter's name: it lies as the update does, and the first as the gradient.
      PlaceAttr place = getPlace(parameters[text]);
      place = withLabel(withOrigin(place, place.getOrigin(), Phase::update), "");
      Location location = operand.get().getLoc();
      Value narrow = builder.create<CastOp>(location, operand.get(), TypeAttr::get(low), place);
      operand.set(builder.create<CastOp>(location, narrow, TypeAttr::get(type), withLabel(place, text)));
    }
  }
};

} // namespace
} // namespace dg::passes
