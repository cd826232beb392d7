// SPDX-License-Identifier: Apache-2.0
// Ops that compute each element by itself. Binary ops broadcast as numpy does.
#ifndef DG_IR_ELEMENTWISEOPS_TD
#define DG_IR_ELEMENTWISEOPS_TD

include "ir/OpBase.td"

class DG_Elementwise<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, inputs, (outs DG_Tensor:$result), !listconcat(traits, [
        Sharded, DefaultCost, DeclareOpInterfaceMethods<DG_ElementwiseOp>])>;
class DG_Binary<string mnemonic> : DG_Elementwise<mnemonic, (ins DG_Tensor:$lhs, DG_Tensor:$rhs), [Gradient]>;

def DG_AddOp : DG_Binary<"add"> {
  let summary = "a + b";
  let description = [{Example: `%y = dg.add %x, %bias` with shapes 64x20 and 20.}];
}
def DG_SubOp : DG_Binary<"sub"> {
  let summary = "a - b";
  let description = [{Example: `%d = dg.sub %prediction, %target`.}];
}
def DG_MulOp : DG_Binary<"mul"> {
  let summary = "a · b";
  let description = [{Example: `%s = dg.mul %d, %d`.}];
}
def DG_DivOp : DG_Binary<"div"> {
  let summary = "a / b";
  let description = [{Example: `%q = dg.div %a, %b`.}];
}
def DG_ScaleOp : DG_Elementwise<"scale", (ins DG_Tensor:$input, F64Attr:$factor), [Gradient]> {
  let summary = "x times a number";
  let description = [{Example: `%h = dg.scale %x {factor = 0.5}`.}];
}
def DG_ReluOp : DG_Elementwise<"relu", (ins DG_Tensor:$input), [Gradient]> {
  let summary = "max(x, 0)";
  let description = [{Example: `%h = dg.relu %x`.}];
}
def DG_ReluGradOp : DG_Elementwise<"relu_grad", (ins DG_Tensor:$grad, DG_Tensor:$output)> {
  let summary = "The gradient where the output of relu was positive, else 0";
  let description = [{Example: `%dx = dg.relu_grad %dy, %y`.}];
}
def DG_GeluOp : DG_Elementwise<"gelu", (ins DG_Tensor:$input), [Gradient]> {
  let summary = "The tanh form of the Gaussian error linear unit";
  let description = [{x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))). Example: `%h = dg.gelu %x`.}];
}
def DG_GeluGradOp : DG_Elementwise<"gelu_grad", (ins DG_Tensor:$grad, DG_Tensor:$input)> {
  let summary = "The gradient of gelu at its input";
  let description = [{Example: `%dx = dg.gelu_grad %dy, %x`.}];
}

#endif
