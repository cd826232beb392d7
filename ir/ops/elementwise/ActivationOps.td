// SPDX-License-Identifier: Apache-2.0
// Activations that are formulas of other elementwise ops: they are taken apart before gradients are taken, and fused again for
// the kernel.
#ifndef DG_IR_ACTIVATIONOPS_TD
#define DG_IR_ACTIVATIONOPS_TD

include "ir/ops/elementwise/ElementwiseBase.td"

class DG_Activation<string mnemonic, dag inputs, Trait domain = Reals> : DG_Elementwise<mnemonic, inputs, domain, [Composite]> {
  let precision = Follows;
}

def DG_HardSigmoidOp : DG_Activation<"hard_sigmoid", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "0.2">:$alpha, DefaultValuedAttr<F64Attr, "0.5">:$beta)> {
  let summary = "max(0, min(1, alpha · x + beta))";
  let description = [{Example: `%y = dg.hard_sigmoid %x`.}];
}
def DG_HardSwishOp : DG_Activation<"hard_swish", (ins DG_Tensor:$input)> {
  let summary = "x · max(0, min(1, x / 6 + 1/2))";
  let description = [{Example: `%y = dg.hard_swish %x`.}];
}
def DG_SiluOp : DG_Activation<"silu", (ins DG_Tensor:$input)> {
  let summary = "x · sigmoid(x), also called swish";
  let description = [{Example: `%y = dg.silu %x`.}];
}
def DG_SoftsignOp : DG_Activation<"softsign", (ins DG_Tensor:$input)> {
  let summary = "x / (1 + |x|)";
  let description = [{Example: `%y = dg.softsign %x`.}];
}
def DG_EluOp : DG_Activation<"elu", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "1.0">:$alpha)> {
  let summary = "x above 0, else alpha · (e^x - 1)";
  let description = [{Example: `%y = dg.elu %x {alpha = 1.0}`.}];
}
def DG_SeluOp : DG_Activation<"selu", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "1.67326319217681884765625">:$alpha, DefaultValuedAttr<F64Attr, "1.05070102214813232421875">:$gamma)> {
  let summary = "gamma · (x above 0, else alpha · (e^x - 1))";
  let description = [{Example: `%y = dg.selu %x`.}];
}
def DG_CeluOp : DG_Activation<"celu", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "1.0">:$alpha)> {
  let summary = "max(0, x) + min(0, alpha · (e^(x/alpha) - 1))";
  let description = [{Example: `%y = dg.celu %x {alpha = 2.0}`.}];
}
def DG_LeakyReluOp : DG_Activation<"leaky_relu", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "0.01">:$alpha)> {
  let summary = "x above 0, else alpha · x";
  let description = [{Example: `%y = dg.leaky_relu %x {alpha = 0.1}`.}];
}
def DG_ThresholdedReluOp : DG_Activation<"thresholded_relu", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "1.0">:$alpha)> {
  let summary = "x above alpha, else 0";
  let description = [{Example: `%y = dg.thresholded_relu %x {alpha = 2.0}`.}];
}
def DG_MishOp : DG_Activation<"mish", (ins DG_Tensor:$input)> {
  let summary = "x · tanh(softplus(x))";
  let description = [{Example: `%y = dg.mish %x`.}];
}
def DG_GeluErfOp : DG_Activation<"gelu_erf", (ins DG_Tensor:$input)> {
  let summary = "The exact form of the Gaussian error linear unit, x/2 · (1 + erf(x / √2))";
  let description = [{Example: `%y = dg.gelu_erf %x`.}];
}
def DG_ShrinkOp : DG_Activation<"shrink", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "0.0">:$bias, DefaultValuedAttr<F64Attr, "0.5">:$lambd)> {
  let summary = "x - bias above lambd, x + bias below -lambd, else 0";
  let description = [{Example: `%y = dg.shrink %x {bias = 0.5, lambd = 0.5}`.}];
}
def DG_PreluOp : DG_Activation<"prelu", (ins DG_Tensor:$input, DG_Tensor:$slope), Numbers> {
  let summary = "x above 0, else slope · x";
  let description = [{The slope broadcasts. Example: `%y = dg.prelu %x, %slope`.}];
}

#endif
