// SPDX-License-Identifier: Apache-2.0
// Losses. Each is the mean over samples of a loss per sample; `--dg-weigh-samples` replaces them by their parts.
#ifndef DG_IR_LOSSOPS_TD
#define DG_IR_LOSSOPS_TD

include "ir/OpBase.td"

class DG_Loss<string mnemonic> : DG_Op<mnemonic, (ins DG_Tensor:$prediction, DG_Tensor:$target), (outs DG_Tensor:$result),
    [DeclareOpInterfaceMethods<DG_LossOp>]>;
def DG_MseOp : DG_Loss<"mse"> {
  let summary = "Mean of (prediction - target)²";
  let description = [{Example: `%loss = dg.mse %p, %y`.}];
}
def DG_NllOp : DG_Loss<"nll"> {
  let summary = "Mean of minus the log-probability of the target class";
  let description = [{Prediction […, c] are log-probabilities, target […] integers. Example: `%loss = dg.nll %logp, %y`.}];
}
def DG_CrossEntropyOp : DG_Loss<"cross_entropy"> {
  let summary = "nll of log_softmax";
  let description = [{Prediction […, c] are logits, target […] integers. Example: `%loss = dg.cross_entropy %logits, %y`.}];
}

#endif
