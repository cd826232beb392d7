// SPDX-License-Identifier: Apache-2.0
#include "ir/rules/LossTerms.h"

#include "ir/dialect/OpFacts.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ActivationOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/ops/reduction/ReductionOps.h"
#include "ir/ops/training/LossOps.h"
#include "ir/rules/ShardingRules.h"

using namespace mlir;

namespace dg::ir {

std::optional<Summing> summingOf(Operation *op) {
  if (auto sum = dyn_cast<ReduceSumOp>(op))
    return Summing{sum.getDims(), false};
  if (auto mean = dyn_cast<ReduceMeanOp>(op))
    return Summing{mean.getDims(), true};
  return std::nullopt;
}

bool isAddition(Operation *op) { return isa<AddOp, SubOp>(op); }

bool isLinearIn(Operation *op, ArrayRef<bool> varies) {
  if (isLinear(op) || summingOf(op) || isa<NegOp>(op))
    return true;
  if (isa<MulOp>(op))
    return llvm::count(varies, true) == 1;
  return isa<DivOp>(op) && !varies[1];
}

std::string doubtOf(Operation *loss) {
  Operation *made = loss->getOperand(0).getDefiningOp();
  while (made && (isRearrangement(made) || isa<CastOp>(made)))
    made = made->getOperand(0).getDefiningOp();
  if (isa<CrossEntropyOp>(loss) && isa_and_present<SoftmaxOp>(made))
    return "takes logits and softmax of them, but dg.softmax has made its prediction: it is taken twice; leave one "
           "out, "
           "or take dg.nll of dg.log_softmax";
  if (isa<BceWithLogitsOp>(loss) && isa_and_present<SigmoidOp>(made))
    return "takes logits and the logistic function of them, but dg.sigmoid has made its prediction: it is taken twice; "
           "leave one out";
  if (isa<NllOp, KlDivOp>(loss) && isa_and_present<SoftmaxOp, LinearOp, MatmulOp>(made))
    return "takes logarithms of probabilities, but " + made->getName().getStringRef().str() +
           " has made its prediction: dg.log_softmax makes them" +
           (isa<NllOp>(loss) ? ", or use dg.cross_entropy" : "");
  return "";
}

} // namespace dg::ir
