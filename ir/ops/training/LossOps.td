// SPDX-License-Identifier: Apache-2.0
// Losses. Each is the mean over samples of a loss per sample; `--dg-weigh-samples` replaces them by their parts.
#ifndef DG_IR_LOSSOPS_TD
#define DG_IR_LOSSOPS_TD

include "ir/dialect/OpBase.td"

class DG_Loss<string mnemonic, dag extra = (ins), list<string> facts = []> : DG_Op<mnemonic, !con((ins DG_Tensor:$prediction, DG_Tensor:$target), extra), (outs DG_Tensor:$result),
    [DeclareOpInterfaceMethods<DG_LossOp, facts>]> {
  let precision = Loss;
}
/// A loss of how far predictions are off.
class DG_ErrorLoss<string mnemonic, dag extra = (ins)> : DG_Loss<mnemonic, extra, ["buildFacts"]>;
def DG_MseOp : DG_ErrorLoss<"mse"> {
  let summary = "Mean of (prediction - target)²";
  let description = [{Example: `%loss = dg.mse %p, %y`.}];
}

/// A loss of classes. Prediction is […, c], target […] of integers, weight [c].
class DG_ClassLoss<string mnemonic, dag extra = (ins)> : DG_Op<mnemonic, !con((ins DG_Tensor:$prediction, DG_Tensor:$target, Optional<DG_Tensor>:$weight,
    OptionalAttr<I64Attr>:$ignore_index), extra), (outs DG_Tensor:$result), [Indices, DeclareOpInterfaceMethods<DG_LossOp, ["buildPerSampleAccuracy", "buildFacts"]>]> {
  let precision = Loss;
}
def DG_NllOp : DG_ClassLoss<"nll"> {
  let evaluation = Evaluates;
  let summary = "Mean of minus the log-probability of the target class";
  let description = [{
    Prediction […, c] are log-probabilities, target […] integers. A position whose target is `ignore_index` does not count; one of class k counts
    weight[k] times, so that the mean is a sum divided by what counts, in all samples of the micro-batch together (0 where nothing counts).
    Examples: `%loss = dg.nll %logp, %y`, `%loss = dg.nll %logp, %y, %w {ignore_index = -100}`.
  }];
}
def DG_CrossEntropyOp : DG_ClassLoss<"cross_entropy", (ins DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing)> {
  let evaluation = Evaluates;
  let summary = "nll of log_softmax";
  let description = [{
    Prediction […, c] are logits, target […] integers; weight and `ignore_index` are those of dg.nll. With `label_smoothing` s the target's class has
    probability 1 - s + s/c and every other s/c. Examples: `%loss = dg.cross_entropy %logits, %y`,
    `%loss = dg.cross_entropy %logits, %y {ignore_index = -100, label_smoothing = 0.1}`.
  }];
}
def DG_L1Op : DG_ErrorLoss<"l1"> {
  let summary = "Mean of |prediction - target|";
  let description = [{Example: `%loss = dg.l1 %p, %y`.}];
}
def DG_HuberOp : DG_ErrorLoss<"huber", (ins DefaultValuedAttr<F64Attr, "1.0">:$delta)> {
  let summary = "Mean of d²/2 where |d| is at most delta, else delta · (|d| - delta/2)";
  let description = [{Example: `%loss = dg.huber %p, %y {delta = 0.5}`.}];
}
def DG_SmoothL1Op : DG_ErrorLoss<"smooth_l1", (ins DefaultValuedAttr<F64Attr, "1.0">:$beta)> {
  let summary = "huber with delta = beta, divided by beta";
  let description = [{Example: `%loss = dg.smooth_l1 %p, %y {beta = 0.5}`.}];
}
def DG_BceWithLogitsOp : DG_Loss<"bce_with_logits", (ins), ["buildFacts"]> {
  let summary = "Mean of log(1 + e^x) - x · y: binary cross-entropy of the logistic function of x";
  let description = [{Example: `%loss = dg.bce_with_logits %x, %y`.}];
}
def DG_KlDivOp : DG_Loss<"kl_div"> {
  let summary = "Mean of y · (log y - x): the prediction x are log-probabilities, the target y probabilities";
  let description = [{Example: `%loss = dg.kl_div %logp, %y`.}];
}

#endif
