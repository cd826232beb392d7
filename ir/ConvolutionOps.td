// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients.
#ifndef DG_IR_CONVOLUTIONOPS_TD
#define DG_IR_CONVOLUTIONOPS_TD

include "ir/OpBase.td"

class DG_Conv<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, !con(inputs, (ins DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0}">:$padding)),
            (outs DG_Tensor:$result), !listconcat(traits, [Sharded, Cost])>;
def DG_Conv2dOp : DG_Conv<"conv2d", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), [Gradient, Composite]> {
  let summary = "Two-dimensional convolution (correlation, as every framework has it)";
  let description = [{
    Input [n, c, h, w], weight [o, c, kh, kw], bias [o]; `padding` rows and columns of zeros on both sides.
    Example: `%c = dg.conv2d %x, %w, %b {strides = array<i64: 1, 1>}`.
  }];
}
def DG_Conv2dInputGradOp : DG_Conv<"conv2d_input_grad", (ins DG_Tensor:$grad, DG_Tensor:$weight, DenseI64ArrayAttr:$input_size)> {
  let summary = "The gradient of conv2d at its input; `input_size` is [h, w]";
  let description = [{Example: `%dx = dg.conv2d_input_grad %dy, %w {input_size = array<i64: 28, 28>}`.}];
}
def DG_Conv2dWeightGradOp : DG_Conv<"conv2d_weight_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel_size)> {
  let summary = "The gradient of conv2d at its weight; `kernel_size` is [kh, kw]";
  let description = [{Example: `%dw = dg.conv2d_weight_grad %dy, %x {kernel_size = array<i64: 5, 5>}`.}];
}

#endif
