// SPDX-License-Identifier: Apache-2.0
// Ops that compute each element by itself. Binary ops broadcast as numpy does.
#ifndef DG_IR_ELEMENTWISEOPS_TD
#define DG_IR_ELEMENTWISEOPS_TD

include "ir/ops/elementwise/ElementwiseBase.td"

def DG_AddOp : DG_Binary<"add", Follows> {
  let summary = "a + b";
  let description = [{Example: `%y = dg.add %x, %bias` with shapes 64x20 and 20.}];
}
def DG_SubOp : DG_Binary<"sub", Follows> {
  let summary = "a - b";
  let description = [{Example: `%d = dg.sub %prediction, %target`.}];
}
def DG_MulOp : DG_Binary<"mul", Follows> {
  let summary = "a · b";
  let description = [{Example: `%s = dg.mul %d, %d`.}];
}
def DG_DivOp : DG_Binary<"div", Steep> {
  let summary = "a / b";
  let description = [{Example: `%q = dg.div %a, %b`.}];
}
def DG_PowOp : DG_Binary<"pow", Steep> {
  let summary = "a to the power of b";
  let description = [{Integers wrap. Example: `%y = dg.pow %a, %b`.}];
}
def DG_ModOp : DG_Elementwise<"mod", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, UnitAttr:$fmod), Numbers, [Gradient]> {
  let summary = "What is left of a when it is divided by b";
  let precision = AsWritten;
  let description = [{With the sign of b, or of a with `fmod`. x mod 0 of integers is 0. Example: `%r = dg.mod %a, %b {fmod}`.}];
}
def DG_MinOp : DG_Binary<"min", Follows> {
  let summary = "The smaller of a and b; NaN where one is NaN";
  let description = [{Example: `%y = dg.min %a, %b`.}];
}
def DG_MaxOp : DG_Binary<"max", Follows> {
  let summary = "The larger of a and b; NaN where one is NaN";
  let description = [{Example: `%y = dg.max %a, %b`.}];
}
def DG_NegOp : DG_Elementwise<"neg", (ins DG_Tensor:$input), Numbers, [Gradient]> {
  let summary = "-x";
  let precision = Follows;
  let description = [{Example: `%y = dg.neg %x`.}];
}
def DG_AbsOp : DG_Elementwise<"abs", (ins DG_Tensor:$input), Numbers, [Gradient]> {
  let summary = "|x|";
  let precision = Follows;
  let description = [{Example: `%y = dg.abs %x`.}];
}
def DG_SignOp : DG_Elementwise<"sign", (ins DG_Tensor:$input), Numbers, [Gradient]> {
  let summary = "-1, 0 or 1, as x is below, at or above 0; its gradient is 0";
  let precision = AsWritten;
  let description = [{Example: `%y = dg.sign %x`.}];
}
def DG_ClipOp : DG_Elementwise<"clip", (ins DG_Tensor:$input, OptionalAttr<F64Attr>:$min, OptionalAttr<F64Attr>:$max), Numbers, [Gradient]> {
  let summary = "x held between `min` and `max`";
  let precision = Follows;
  let description = [{Where one is left out there is no limit on that side. Example: `%y = dg.clip %x {min = 0.0, max = 6.0}`.}];
}
def DG_ScaleOp : DG_Elementwise<"scale", (ins DG_Tensor:$input, F64Attr:$factor), Reals, [Gradient]> {
  let summary = "x times a number";
  let precision = Follows;
  let description = [{Example: `%h = dg.scale %x {factor = 0.5}`.}];
}
def DG_ReluOp : DG_Elementwise<"relu", (ins DG_Tensor:$input), Numbers, [Gradient]> {
  let summary = "max(x, 0)";
  let precision = Follows;
  let description = [{Example: `%h = dg.relu %x`.}];
}
def DG_ReluGradOp : DG_Elementwise<"relu_grad", (ins DG_Tensor:$grad, DG_Tensor:$output), Reals, [Gradient]> {
  let summary = "The gradient where the output of relu was positive, else 0";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.relu_grad %dy, %y`.}];
}
def DG_GeluOp : DG_Elementwise<"gelu", (ins DG_Tensor:$input), Reals, [Gradient]> {
  let summary = "The tanh form of the Gaussian error linear unit";
  let precision = Follows;
  let description = [{x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))). Example: `%h = dg.gelu %x`.}];
}
def DG_GeluGradOp : DG_Elementwise<"gelu_grad", (ins DG_Tensor:$grad, DG_Tensor:$input), Reals, [Gradient]> {
  let summary = "The gradient of gelu at its input";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.gelu_grad %dy, %x`.}];
}

#endif
