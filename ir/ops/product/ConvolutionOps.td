// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients.
#ifndef DG_IR_CONVOLUTIONOPS_TD
#define DG_IR_CONVOLUTIONOPS_TD

include "ir/dialect/OpBase.td"

class DG_Conv<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, !con(inputs, (ins DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0}">:$padding)),
            (outs DG_Tensor:$result), !listconcat(traits, [Sharded, Cost])>;
def DG_Conv2dOp : DG_Conv<"conv2d", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), [Gradient, Composite]> {
  let summary = "Two-dimensional convolution (correlation, as every framework has it)";
  let precision = Product;
  let description = [{
    Input [n, c, h, w], weight [o, c, kh, kw], bias [o]; `padding` rows and columns of zeros on both sides.
    Example: `%c = dg.conv2d %x, %w, %b {strides = array<i64: 1, 1>}`.
  }];
}
def DG_Conv2dInputGradOp : DG_Conv<"conv2d_input_grad", (ins DG_Tensor:$grad, DG_Tensor:$weight, DenseI64ArrayAttr:$input_size), [Gradient]> {
  let summary = "The gradient of conv2d at its input; `input_size` is [h, w]";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.conv2d_input_grad %dy, %w {input_size = array<i64: 28, 28>}`.}];
}
def DG_Conv2dWeightGradOp : DG_Conv<"conv2d_weight_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel_size), [Gradient]> {
  let summary = "The gradient of conv2d at its weight; `kernel_size` is [kh, kw]";
  let precision = AsWritten;
  let description = [{Example: `%dw = dg.conv2d_weight_grad %dy, %x {kernel_size = array<i64: 5, 5>}`.}];
}

/// `strides`, `padding` and `dilation` have one size for each dimension of places, `padding` may also have all starts and then all
/// ends; left out they are 1, 0 and 1. Channels are cut into `groups`, each with its own outputs.
class DG_ConvNd<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, !con(inputs, (ins DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding,
              DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilation, DefaultValuedAttr<I64Attr, "1">:$groups)),
            (outs DG_Tensor:$result), !listconcat(traits, [Gradient, Composite])>;
def DG_ConvOp : DG_ConvNd<"conv", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), [ShardedWithShapes, Cost]> {
  let summary = "Convolution over one to three dimensions";
  let precision = Product;
  let description = [{
    Input [n, c, …], weight [o, c / groups, …], bias [o]. One and two dimensions without groups, dilation or uneven padding are conv2d.
    Example: `%y = dg.conv %x, %w {padding = array<i64: 1, 1>, groups = 32}`.
  }];
}
def DG_ConvInputGradOp : DG_ConvNd<"conv_input_grad", (ins DG_Tensor:$grad, DG_Tensor:$weight, DenseI64ArrayAttr:$input_size), [ShardedWithShapes, Cost]> {
  let summary = "The gradient of conv at its input; `input_size` are the sizes of its places";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.conv_input_grad %dy, %w {input_size = array<i64: 28>}`.}];
}
def DG_ConvWeightGradOp : DG_ConvNd<"conv_weight_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel_size), [ShardedWithShapes, Cost]> {
  let summary = "The gradient of conv at its weight; `kernel_size` are the sizes of its taps";
  let precision = AsWritten;
  let description = [{Example: `%dw = dg.conv_weight_grad %dy, %x {kernel_size = array<i64: 5>}`.}];
}
def DG_ConvTransposeOp : DG_Op<"conv_transpose", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilation, DefaultValuedAttr<I64Attr, "1">:$groups,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$output_padding), (outs DG_Tensor:$result), [Composite]> {
  let summary = "The transpose of a convolution: what conv does to a gradient on its way back";
  let precision = Product;
  let description = [{
    Input [n, c, …], weight [c, o / groups, …], bias [o]. Sizes are (in - 1) · stride - padding + extent of the kernel + `output_padding`.
    Example: `%y = dg.conv_transpose %x, %w {strides = array<i64: 2, 2>}`.
  }];
}

#endif
