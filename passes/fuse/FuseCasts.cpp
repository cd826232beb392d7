// SPDX-License-Identifier: Apache-2.0
// Takes casts out of the way that need no kernel: those that undo each other, and those that a product does by itself
// while it reads a factor or writes its sums.
// Pattern of MatmulOp: a product that rounds by itself takes its casts in.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FUSECASTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

Type elementOf(Value value) { return tensorOf(value).getElementType(); }
bool isWidening(CastOp cast) { return isHalf(elementOf(cast.getInput())) && elementOf(cast.getResult()).isF32(); }

struct FuseCastsPass : impl::FuseCastsBase<FuseCastsPass> {
  using FuseCastsBase::FuseCastsBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>()) {
      Block &body = graph.getBody().front();
      for (auto cast : llvm::make_early_inc_range(body.getOps<CastOp>()))
        joinCasts(cast);
      for (auto cast : llvm::make_early_inc_range(body.getOps<CastOp>()))
        if (isWidening(cast))
          sumInto(cast);
      for (auto product : body.getOps<MatmulOp>())
        readWide(product);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
        if (isa<CastOp>(op) && op.use_empty())
          op.erase();
    }
  }

private:
  /// Sums over micro-batches lie between backward and update: there a wider type has its reason.
  bool areApart(CastOp first, CastOp second) const {
    return microbatches > 1 && getPlace(first).getPhase() != getPlace(second).getPhase();
  }

  /// What was widened and is cast again is cast from what it was.
  void joinCasts(CastOp cast) {
    auto first = cast.getInput().getDefiningOp<CastOp>();
    if (!first || !isWidening(first) || !isa<FloatType>(cast.getTo()) || areApart(first, cast))
      return;
    cast.getInputMutable().assign(first.getInput());
    if (elementOf(first.getInput()) == cast.getTo())
      cast.getResult().replaceAllUsesWith(first.getInput());
  }

  /// A product whose sums are wanted in f32 gives them.
  static void sumInto(CastOp cast) {
    auto product = cast.getInput().getDefiningOp<MatmulOp>();
    if (!product || product.getTo() || !product->hasOneUse() ||
        getPlace(product).getPhase() != getPlace(cast).getPhase())
      return;
    product.setToAttr(TypeAttr::get(elementOf(cast.getResult())));
    product.getResult().setType(tensorOf(cast.getResult()));
    cast.getResult().replaceAllUsesWith(product.getResult());
  }

  /// A weight is rounded while it is packed: no copy of it is kept, and none is made for each micro-batch.
  static void readWide(MatmulOp product) {
    for (OpOperand &operand : product->getOpOperands()) {
      auto cast = operand.get().getDefiningOp<CastOp>();
      Value other = product->getOperand(1 - operand.getOperandNumber());
      if (cast && cast.getInput().getDefiningOp<ParameterOp>() && elementOf(cast.getInput()).isF32() &&
          elementOf(other) == cast.getTo() && isHalf(cast.getTo()))
        operand.set(cast.getInput());
    }
  }
};

} // namespace
} // namespace dg::passes
